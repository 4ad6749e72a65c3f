#pragma once

// Threads of execution that give way to each other by hand, a few dozen
// nanoseconds each time.

#include <functional>
#include <memory>
#include <vector>

namespace txl::cuda::emulator {

// Thread-compatible. A fiber has a stack of 256 KiB, below it a page that
// nobody may touch; stacks are kept for the next Start.
class FiberPool {
 public:
  FiberPool();
  ~FiberPool();
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;

  // `count` fibers that each will call `body`, which must not throw. REQUIRES:
  // all earlier ones ended.
  void Start(int count, std::function<void()> body);
  // Runs a fiber until it yields (false) or ends (true). REQUIRES: it did not
  // end before.
  bool Resume(int fiber);
  // Of the running fiber: back to who resumed it.
  void Yield();

 private:
  struct Context;
  struct Fiber;

  static void Enter(unsigned high, unsigned low);
  void Prepare(Fiber& fiber);

  std::function<void()> body_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  Fiber* current_ = nullptr;
  std::unique_ptr<Context> caller_;
};

}  // namespace txl::cuda::emulator
