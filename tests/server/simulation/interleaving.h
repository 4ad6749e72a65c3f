#pragma once

// Other threads, simulated: whenever the only thread has let go of its last
// mutex, another one might run next. There a function is called, which does
// what the other thread does, start to end. So every order of critical sections
// that threads can come to is reached without a thread, and comes again with
// its random seed.
//
// absl::Mutex is wrapped by the linker (CMakeLists.txt): the product's own code
// is the one that serves.

#include <functional>

namespace txl::simulation {

// While it lives, `point` is called after every mutex that is let go, but not
// while another mutex is held, nor from within an Alone. One at a time; for a
// program of one thread.
class Interleaving {
 public:
  explicit Interleaving(std::function<void()> point);
  ~Interleaving();
  Interleaving(const Interleaving&) = delete;
  Interleaving& operator=(const Interleaving&) = delete;

  // What another thread does, at a place without a mutex; `first` is false
  // where that is within another one, or a mutex is held.
  class Alone {
   public:
    Alone();
    ~Alone();
    bool first() const { return first_; }

   private:
    bool first_;
  };
};

}  // namespace txl::simulation
