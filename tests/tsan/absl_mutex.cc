// Tells the thread sanitizer what absl's locks order. The distribution's Abseil
// is built without the sanitizer, which so sees its locks as nothing and
// reports every guarded access as a race. These definitions take the place of
// the library's, call them, and add the missing edges: all that happened before
// an unlock happens before what follows the next lock. (A little coarser than
// the truth: readers order each other too.) Linked into tests of such builds
// only.

#include <dlfcn.h>

#include <string>

#include "absl/base/config.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

namespace {

#define TXL_TEXT_OF(x) #x
#define TXL_TEXT(x) TXL_TEXT_OF(x)
constexpr char kNamespace[] = TXL_TEXT(ABSL_OPTION_INLINE_NAMESPACE_NAME);
#undef TXL_TEXT
#undef TXL_TEXT_OF

// The library's own function; `member` is its name as the Itanium ABI writes
// it after the namespace: "5Mutex4LockEv" for Mutex::Lock(); const members
// have "_ZNK4absl" before it.
template <typename Function>
Function* Library(const std::string& member,
                  const std::string& absl_namespace = "_ZN4absl") {
  const std::string inline_namespace = kNamespace;
  const std::string name = absl_namespace +
                           std::to_string(inline_namespace.size()) +
                           inline_namespace + member;
  void* const found = dlsym(RTLD_NEXT, name.c_str());
  if (found == nullptr) __builtin_trap();  // Abseil of another shape
  return reinterpret_cast<Function*>(found);
}

// Conditions are evaluated by whoever unlocks, inside of the library and while
// it holds the lock: those reads are no races.
class IgnoreReads {
 public:
  IgnoreReads() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
  ~IgnoreReads() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
  IgnoreReads(const IgnoreReads&) = delete;
  IgnoreReads& operator=(const IgnoreReads&) = delete;
};

// Calls that come back with the lock, having let go of it if `held`.
template <typename Call>
auto Waiting(void* mutex, bool held, const Call& call) {
  if (held) __tsan_release(mutex);
  struct Acquire {
    void* mutex;
    ~Acquire() { __tsan_acquire(mutex); }
  } acquire{mutex};
  const IgnoreReads ignore;
  return call();
}

using absl::Condition;
using absl::CondVar;
using absl::Duration;
using absl::Mutex;
using absl::Notification;
using absl::Time;

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  static auto* const lock = Library<void(Mutex*)>("5Mutex4LockEv");
  Waiting(this, false, [&] { lock(this); });
}

void Mutex::ReaderLock() {
  static auto* const lock = Library<void(Mutex*)>("5Mutex10ReaderLockEv");
  Waiting(this, false, [&] { lock(this); });
}

bool Mutex::TryLock() {
  static auto* const lock = Library<bool(Mutex*)>("5Mutex7TryLockEv");
  return Waiting(this, false, [&] { return lock(this); });
}

void Mutex::Unlock() {
  static auto* const unlock = Library<void(Mutex*)>("5Mutex6UnlockEv");
  __tsan_release(this);
  const IgnoreReads ignore;
  unlock(this);
}

void Mutex::ReaderUnlock() {
  static auto* const unlock = Library<void(Mutex*)>("5Mutex12ReaderUnlockEv");
  __tsan_release(this);
  const IgnoreReads ignore;
  unlock(this);
}

void Mutex::Await(const Condition& condition) {
  static auto* const await =
      Library<void(Mutex*, const Condition&)>("5Mutex5AwaitERKNS0_9ConditionE");
  Waiting(this, true, [&] { await(this, condition); });
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static auto* const await = Library<bool(Mutex*, const Condition&, Duration)>(
      "5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  return Waiting(this, true, [&] { return await(this, condition, timeout); });
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  static auto* const await = Library<bool(Mutex*, const Condition&, Time)>(
      "5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  return Waiting(this, true, [&] { return await(this, condition, deadline); });
}

void Mutex::LockWhen(const Condition& condition) {
  static auto* const lock = Library<void(Mutex*, const Condition&)>(
      "5Mutex8LockWhenERKNS0_9ConditionE");
  Waiting(this, false, [&] { lock(this, condition); });
}

void CondVar::Wait(Mutex* mutex) {
  static auto* const wait =
      Library<void(CondVar*, Mutex*)>("7CondVar4WaitEPNS0_5MutexE");
  Waiting(mutex, true, [&] { wait(this, mutex); });
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  static auto* const wait = Library<bool(CondVar*, Mutex*, Duration)>(
      "7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  return Waiting(mutex, true, [&] { return wait(this, mutex, timeout); });
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  static auto* const wait = Library<bool(CondVar*, Mutex*, Time)>(
      "7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  return Waiting(mutex, true, [&] { return wait(this, mutex, deadline); });
}

void Notification::Notify() {
  static auto* const notify =
      Library<void(Notification*)>("12Notification6NotifyEv");
  __tsan_release(this);
  notify(this);
}

void Notification::WaitForNotification() const {
  static auto* const wait = Library<void(const Notification*)>(
      "12Notification19WaitForNotificationEv", "_ZNK4absl");
  wait(this);
  __tsan_acquire(const_cast<Notification*>(this));
}

ABSL_NAMESPACE_END
}  // namespace absl
