#pragma once

// A part of the process's memory that requests may take, and its limit: what
// grows by a request's doing is taken from one of these or refused.

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace txl {

class ByteBudget;

// Bytes taken from a budget, given back at the end of its life. Move-only;
// thread-compatible.
class ByteHold {
 public:
  ByteHold() = default;
  ByteHold(ByteHold&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  ByteHold& operator=(ByteHold&& other) noexcept;
  ~ByteHold() { Release(); }

  int64_t bytes() const { return bytes_; }
  // Gives all back now.
  void Release();

 private:
  friend class ByteBudget;
  ByteHold(ByteBudget* budget, int64_t bytes)
      : budget_(budget), bytes_(bytes) {}

  ByteBudget* budget_ = nullptr;
  int64_t bytes_ = 0;
};

// Thread-safe; takes no lock. Outlives its holds.
class ByteBudget {
 public:
  explicit ByteBudget(int64_t limit) : limit_(limit) {}
  // One that refuses nothing.
  static ByteBudget* Unlimited() {
    static ByteBudget unlimited(std::numeric_limits<int64_t>::max());
    return &unlimited;
  }

  int64_t limit() const { return limit_; }
  int64_t used() const { return used_.load(std::memory_order_relaxed); }
  // Requests that it refused.
  int64_t refused() const { return refused_.load(std::memory_order_relaxed); }

  // `bytes` >= 0, all or nothing; nothing when they are not left.
  std::optional<ByteHold> TryHold(int64_t bytes) {
    if (used_.fetch_add(bytes, std::memory_order_relaxed) + bytes > limit_) {
      used_.fetch_sub(bytes, std::memory_order_relaxed);
      refused_.fetch_add(1, std::memory_order_relaxed);
      return std::nullopt;
    }
    return ByteHold(this, bytes);
  }

 private:
  friend class ByteHold;

  const int64_t limit_;
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> refused_{0};
};

inline void ByteHold::Release() {
  if (budget_ == nullptr) return;
  budget_->used_.fetch_sub(bytes_, std::memory_order_relaxed);
  budget_ = nullptr;
  bytes_ = 0;
}

inline ByteHold& ByteHold::operator=(ByteHold&& other) noexcept {
  if (this != &other) {
    Release();
    budget_ = std::exchange(other.budget_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

}  // namespace txl
