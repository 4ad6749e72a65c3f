#include "tests/model/cuda/emulator/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TXL_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define TXL_ADDRESS_SANITIZER
#endif

#if defined(TXL_ADDRESS_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#endif

namespace txl::cuda::emulator {
namespace {

constexpr size_t kStackBytes = 256 << 10;
constexpr size_t kGuardBytes = 64 << 10;  // a page, however large pages are

}  // namespace

// Where an execution was left.
struct FiberPool::Context {
  ucontext_t first;  // how a fiber begins
  void* place[5];    // __builtin_setjmp's
  bool begun = true;
  // What AddressSanitizer wants to know.
  const void* stack = nullptr;
  size_t stack_bytes = 0;
  void* fake_stack = nullptr;  // its own

  // Leaves this one and goes on where `other` was left; returns when someone
  // switches back.
  void SwitchTo(Context& other);
  [[noreturn]] void GoOn();

  void Leave([[maybe_unused]] const Context& other) {
#if defined(TXL_ADDRESS_SANITIZER)
    __sanitizer_start_switch_fiber(&fake_stack, other.stack, other.stack_bytes);
#endif
  }
  // `from`: who switched here. Where its stack lies is news if it is a
  // caller's.
  void Arrive([[maybe_unused]] Context& from) {
#if defined(TXL_ADDRESS_SANITIZER)
    __sanitizer_finish_switch_fiber(fake_stack, &from.stack, &from.stack_bytes);
#endif
  }
};

// The compiler's own setjmp and longjmp. swapcontext asks the kernel for the
// signal mask every time, which takes ten times as long as the rest; the
// checked longjmp of some systems ends the program at a jump to another stack;
// and AddressSanitizer's kinds of both wipe what it knows of a stack, as it
// does before any call that does not return. Hence no instrumentation here.
[[noreturn, gnu::noinline, gnu::no_sanitize_address]] void
FiberPool::Context::GoOn() {
  if (begun) __builtin_longjmp(place, 1);
  begun = true;
  setcontext(&first);
  std::abort();  // setcontext failed
}

[[gnu::noinline, gnu::no_sanitize_address]] void FiberPool::Context::SwitchTo(
    Context& other) {
  Leave(other);
  if (__builtin_setjmp(place) == 0) other.GoOn();
  Arrive(other);  // nobody else switches back
}

struct FiberPool::Fiber {
  Context context;
  void* memory = MAP_FAILED;
  bool ended = true;

  ~Fiber() {
    if (memory != MAP_FAILED) munmap(memory, kGuardBytes + kStackBytes);
  }
};

FiberPool::FiberPool() : caller_(std::make_unique<Context>()) {}
FiberPool::~FiberPool() = default;

void FiberPool::Start(int count, std::function<void()> body) {
  body_ = std::move(body);
  while (static_cast<int>(fibers_.size()) < count) {
    fibers_.push_back(std::make_unique<Fiber>());
    Prepare(*fibers_.back());
  }
  for (int i = 0; i < count; ++i) fibers_[i]->ended = false;
}

void FiberPool::Prepare(Fiber& fiber) {
  fiber.memory = mmap(nullptr, kGuardBytes + kStackBytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fiber.memory == MAP_FAILED) throw std::bad_alloc();
  unsigned char* stack =
      static_cast<unsigned char*>(fiber.memory) + kGuardBytes;
  if (mprotect(stack, kStackBytes, PROT_READ | PROT_WRITE) != 0) {
    throw std::bad_alloc();
  }
  Context& context = fiber.context;
  context.stack = stack;
  context.stack_bytes = kStackBytes;
  context.begun = false;
  getcontext(&context.first);
  context.first.uc_stack.ss_sp = stack;
  context.first.uc_stack.ss_size = kStackBytes;
  context.first.uc_link = nullptr;
  // A pointer travels in two ints: makecontext passes nothing else.
  const uint64_t self = reinterpret_cast<uintptr_t>(this);
  makecontext(&context.first, reinterpret_cast<void (*)()>(&Enter), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
}

// A fiber never leaves this: after its body it waits for the next Start.
void FiberPool::Enter(unsigned high, unsigned low) {
  auto* pool = reinterpret_cast<FiberPool*>(
      static_cast<uintptr_t>(uint64_t{high} << 32 | low));
  pool->current_->context.Arrive(*pool->caller_);
  while (true) {
    pool->body_();
    pool->current_->ended = true;
    pool->Yield();
  }
}

bool FiberPool::Resume(int fiber) {
  current_ = fibers_[fiber].get();
  caller_->SwitchTo(current_->context);
  return current_->ended;
}

void FiberPool::Yield() { current_->context.SwitchTo(*caller_); }

}  // namespace txl::cuda::emulator
