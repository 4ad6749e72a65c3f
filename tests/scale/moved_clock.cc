// Preloaded into a program (LD_PRELOAD): its wall clock is ahead by what the
// file that MOVED_CLOCK_FILE names says, and can so be set while the program
// runs. The file is two numbers of 64 bits: nanoseconds ahead, and how often
// the clock was read, which is counted here. The monotonic clock stays.
//
// A wait until a time of the wall clock (a futex's, which Abseil's waits are)
// ends when the moved clock says so, also when it is set meanwhile, as the
// kernel has it for its own.

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

constexpr int64_t kSecond = 1'000'000'000;
// Within which a wait notices that the clock was set.
constexpr int64_t kSlice = kSecond / 20;

struct Shared {
  std::atomic<int64_t> ahead;
  std::atomic<int64_t> readings;
};

using GetTime = int (*)(clockid_t, timespec*);
using SystemCall = long (*)(long, ...);  // NOLINT(runtime/int): libc's

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

GetTime RealGetTime() {
  static const auto real = Next<GetTime>("clock_gettime");
  return real;
}

SystemCall RealSystemCall() {
  static const auto real = Next<SystemCall>("syscall");
  return real;
}

// Null: the clock is not moved.
Shared* MapShared() {
  const char* path = std::getenv("MOVED_CLOCK_FILE");
  if (path == nullptr) return nullptr;
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* const mapped = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                            MAP_SHARED, file, 0);
  close(file);
  return mapped == MAP_FAILED ? nullptr : static_cast<Shared*>(mapped);
}

Shared* g_shared = nullptr;

// Before any thread of the program.
__attribute__((constructor)) void Begin() {
  RealGetTime();
  RealSystemCall();
  g_shared = MapShared();
}

int64_t Ahead() {
  return g_shared == nullptr ? 0
                             : g_shared->ahead.load(std::memory_order_relaxed);
}

int64_t ToNanos(const timespec& time) {
  return time.tv_sec * kSecond + time.tv_nsec;
}

timespec ToTimespec(int64_t nanos) {
  return {nanos / kSecond, nanos % kSecond};
}

int64_t RealNanos() {
  timespec time;
  RealGetTime()(CLOCK_REALTIME, &time);
  return ToNanos(time);
}

int64_t MovedNanos() {
  if (g_shared != nullptr) {
    g_shared->readings.fetch_add(1, std::memory_order_relaxed);
  }
  return RealNanos() + Ahead();
}

// FUTEX_WAIT_BITSET until `deadline` of the moved clock.
long Wait(const long (&args)[6], int64_t deadline) {  // NOLINT(runtime/int)
  while (true) {
    const int64_t now = RealNanos();
    const int64_t left = deadline - Ahead() - now;
    const timespec end = ToTimespec(now + std::clamp<int64_t>(left, 0, kSlice));
    const auto result = RealSystemCall()(SYS_futex, args[0], args[1], args[2],
                                         &end, args[4], args[5]);
    if (result == 0 || errno != ETIMEDOUT || left <= kSlice) return result;
  }
}

bool WaitsForWallClock(long operation) {  // NOLINT(runtime/int)
  return (operation & FUTEX_CLOCK_REALTIME) != 0 &&
         (operation & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (g_shared == nullptr ||
      (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) {
    return RealGetTime()(clock, time);
  }
  *time = ToTimespec(MovedNanos());
  return 0;
}

int gettimeofday(timeval* time, void*) noexcept {
  const int64_t nanos = MovedNanos();
  *time = {nanos / kSecond, nanos % kSecond / 1000};
  return 0;
}

time_t time(time_t* into) noexcept {
  const time_t now = MovedNanos() / kSecond;
  if (into != nullptr) *into = now;
  return now;
}

long syscall(long number, ...) noexcept {  // NOLINT(runtime/int)
  va_list list;
  va_start(list, number);
  long args[6];  // NOLINT(runtime/int)
  for (auto& arg : args) arg = va_arg(list, long);
  va_end(list);
  if (number == SYS_futex && g_shared != nullptr && args[3] != 0 &&
      WaitsForWallClock(args[1])) {
    return Wait(args, ToNanos(*reinterpret_cast<const timespec*>(args[3])));
  }
  return RealSystemCall()(number, args[0], args[1], args[2], args[3], args[4],
                          args[5]);
}

}  // extern "C"
