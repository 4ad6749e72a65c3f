#include "tests/server/simulation/interleaving.h"

#include <utility>

#include "absl/synchronization/mutex.h"

// The linker gives every call of Mutex::Lock and Unlock to the first two, and
// the originals to the other two.
void WrappedLock(absl::Mutex*) __asm__("__wrap_" TXL_MUTEX_LOCK);
void WrappedUnlock(absl::Mutex*) __asm__("__wrap_" TXL_MUTEX_UNLOCK);
void RealLock(absl::Mutex*) __asm__("__real_" TXL_MUTEX_LOCK);
void RealUnlock(absl::Mutex*) __asm__("__real_" TXL_MUTEX_UNLOCK);

namespace {

int held = 0;
bool alone = false;
std::function<void()>* current = nullptr;

}  // namespace

void WrappedLock(absl::Mutex* mutex) {
  RealLock(mutex);
  ++held;
}

void WrappedUnlock(absl::Mutex* mutex) {
  --held;
  RealUnlock(mutex);
  if (current != nullptr && !alone && held == 0) (*current)();
}

namespace txl::simulation {

Interleaving::Interleaving(std::function<void()> point) {
  current = new std::function<void()>(std::move(point));
}

Interleaving::~Interleaving() { delete std::exchange(current, nullptr); }

Interleaving::Alone::Alone() : first_(!alone && held == 0) {
  if (first_) alone = true;
}

Interleaving::Alone::~Alone() {
  if (first_) alone = false;
}

}  // namespace txl::simulation
