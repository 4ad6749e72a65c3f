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
  while (static_cast<int>(fibers_.size()) < count) {
    fibers_.push_back(std::make_unique<Fiber>());
    fibers_.back()->stack = std::make_unique<unsigned char[]>(kStackBytes);
  }
  // A pointer travels in two ints: makecontext passes nothing else.
  const uint64_t self = reinterpret_cast<uintptr_t>(this);
  for (int i = 0; i < count; ++i) {
    Fiber& fiber = *fibers_[i];
    fiber.ended = false;
    fiber.sanitizer = nullptr;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, reinterpret_cast<void (*)()>(&Enter), 2,
                static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
  }
}

void FiberPool::Enter(unsigned high, unsigned low) {
  auto* pool = reinterpret_cast<FiberPool*>(
      static_cast<uintptr_t>(uint64_t{high} << 32 | low));
  TXL_SWITCH_ENDS(nullptr, &pool->caller_stack_, &pool->caller_stack_bytes_);
  pool->body_();
  pool->current_->ended = true;
  pool->SwitchBack(true);
}

bool FiberPool::Resume(int fiber) {
  current_ = fibers_[fiber].get();
  TXL_SWITCH_STARTS(&caller_sanitizer_, current_->stack.get(), kStackBytes);
  swapcontext(&caller_, &current_->context);
  TXL_SWITCH_ENDS(caller_sanitizer_, nullptr, nullptr);
  return current_->ended;
}

void FiberPool::Yield() { SwitchBack(false); }

// A fiber that ends gives its sanitizer state away for good.
void FiberPool::SwitchBack(bool ends) {
  Fiber* self = current_;
  TXL_SWITCH_STARTS(ends ? nullptr : &self->sanitizer, caller_stack_,
                    caller_stack_bytes_);
  if (ends) {
    setcontext(&caller_);
  } else {
    swapcontext(&self->context, &caller_);
  }
  TXL_SWITCH_ENDS(self->sanitizer, &caller_stack_, &caller_stack_bytes_);
}

}  // namespace txl::cuda::emulator
