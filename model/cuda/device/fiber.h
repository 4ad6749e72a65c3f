#pragma once

// Threads of execution that give way to each other by hand.

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace txl::cuda::emulator {

// Thread-compatible. Stacks are kept for the next Start.
class FiberPool {
 public:
  // `count` fibers that each will call `body`. REQUIRES: all earlier ended.
  void Start(int count, std::function<void()> body);
  // Runs a fiber until it yields (false) or ends (true).
  bool Resume(int fiber);
  // Of the running fiber: back to who resumed it.
  void Yield();

 private:
  // Where somebody stopped, to be gone on from.
  struct Place {
    ucontext_t context;
    jmp_buf jump;
    bool entered = false;  // not for the first time
  };
  struct Fiber {
    Place place;
    std::unique_ptr<unsigned char[]> stack;
    bool ended = true;
    void* sanitizer = nullptr;  // AddressSanitizer's stack of this fiber
  };

  static void Enter(unsigned high, unsigned low);
  static void Switch(Place& from, Place& to);
  void AddFiber();

  std::function<void()> body_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  Fiber* current_ = nullptr;
  Place caller_;
  void* caller_sanitizer_ = nullptr;
  const void* caller_stack_ = nullptr;
  size_t caller_stack_bytes_ = 0;
};

}  // namespace txl::cuda::emulator
