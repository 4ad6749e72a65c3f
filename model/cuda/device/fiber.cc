// Jumps from stack to stack are what the C library would stop.
#undef _FORTIFY_SOURCE

#include "model/cuda/device/fiber.h"

#include <cstdint>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define TXL_SWITCH_STARTS(save, stack, bytes) \
  __sanitizer_start_switch_fiber(save, stack, bytes)
#define TXL_SWITCH_ENDS(save, stack, bytes) \
  __sanitizer_finish_switch_fiber(save, stack, bytes)
#else
#define TXL_SWITCH_STARTS(save, stack, bytes) static_cast<void>(save)
#define TXL_SWITCH_ENDS(save, stack, bytes) static_cast<void>(save)
#endif

namespace txl::cuda::emulator {
namespace {

constexpr size_t kStackBytes = 256 << 10;

}  // namespace

void FiberPool::Start(int count, std::function<void()> body) {
  body_ = std::move(body);
  while (static_cast<int>(fibers_.size()) < count) AddFiber();
  for (int i = 0; i < count; ++i) fibers_[i]->ended = false;
}

void FiberPool::AddFiber() {
  fibers_.push_back(std::make_unique<Fiber>());
  Fiber& fiber = *fibers_.back();
  fiber.stack = std::make_unique<unsigned char[]>(kStackBytes);
  ucontext_t& context = fiber.place.context;
  getcontext(&context);
  context.uc_stack.ss_sp = fiber.stack.get();
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  // A pointer travels in two ints: makecontext passes nothing else.
  const uint64_t self = reinterpret_cast<uintptr_t>(this);
  makecontext(&context, reinterpret_cast<void (*)()>(&Enter), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
}

// A fiber calls one body after the other.
void FiberPool::Enter(unsigned high, unsigned low) {
  auto* pool = reinterpret_cast<FiberPool*>(
      static_cast<uintptr_t>(uint64_t{high} << 32 | low));
  TXL_SWITCH_ENDS(nullptr, &pool->caller_stack_, &pool->caller_stack_bytes_);
  while (true) {
    pool->body_();
    pool->current_->ended = true;
    pool->Yield();
  }
}

// swapcontext asks the kernel for the signals' mask, which takes most of a
// test's time; a jump does not. Sanitizers follow the former only.
void FiberPool::Switch(Place& from, Place& to) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  swapcontext(&from.context, &to.context);
#else
  from.entered = true;
  if (_setjmp(from.jump) != 0) return;
  if (to.entered) _longjmp(to.jump, 1);
  setcontext(&to.context);
#endif
}

bool FiberPool::Resume(int fiber) {
  current_ = fibers_[fiber].get();
  TXL_SWITCH_STARTS(&caller_sanitizer_, current_->stack.get(), kStackBytes);
  Switch(caller_, current_->place);
  TXL_SWITCH_ENDS(caller_sanitizer_, nullptr, nullptr);
  return current_->ended;
}

void FiberPool::Yield() {
  Fiber* self = current_;
  TXL_SWITCH_STARTS(&self->sanitizer, caller_stack_, caller_stack_bytes_);
  Switch(self->place, caller_);
  TXL_SWITCH_ENDS(self->sanitizer, &caller_stack_, &caller_stack_bytes_);
}

}  // namespace txl::cuda::emulator
