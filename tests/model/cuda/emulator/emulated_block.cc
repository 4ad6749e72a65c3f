#include "tests/model/cuda/emulator/emulated_block.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "tests/model/cuda/emulator/fiber.h"

#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(data, bytes)
#define ASAN_UNPOISON_MEMORY_REGION(data, bytes)
#endif

namespace txl::cuda::emulator {
namespace {

enum class Wait { kNone, kBlock, kWarp, kExchange, kEnded };

struct Copy {
  void* to;
  const void* from;  // null: zeros
  size_t bytes;
};

void Carry(const Copy& copy) {
  if (copy.from == nullptr) {
    std::memset(copy.to, 0, copy.bytes);
  } else {
    std::memcpy(copy.to, copy.from, copy.bytes);
  }
}

// One thread of the block.
struct Lane {
  Wait wait = Wait::kNone;
  std::vector<std::vector<Copy>> groups;  // closed ones
  std::vector<Copy> open;
  uint64_t exchanges = 0;
  size_t exchanged_bytes = 0;
  bool awaited = false;  // earlier kernels
};

struct Warp {
  // Of exchanges in turn: whoever writes the one after the next has seen that
  // all others came to the next, and so are done with this.
  unsigned char given[2][kWarp][64];
};

// What a block has, and kGuardBytes behind it. 0xff is NaN in every format.
class SharedBytes {
 public:
  explicit SharedBytes(size_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    void* memory = nullptr;
    if (posix_memalign(&memory, 128, bytes + kGuardBytes) != 0) {
      Fail("no memory for shared memory");
    }
    data_ = static_cast<unsigned char*>(memory);
  }
  ~SharedBytes() { std::free(data_); }
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;

  unsigned char* data() const { return data_; }
  bool Has(const void* data, size_t bytes) const {
    const auto begin = reinterpret_cast<uintptr_t>(data_);
    const auto at = reinterpret_cast<uintptr_t>(data);
    return at >= begin && bytes <= bytes_ && at - begin <= bytes_ - bytes;
  }

  void BeginBlock() {
    if (bytes_ == 0) return;
    std::memset(data_, 0xff, bytes_ + kGuardBytes);
    ASAN_POISON_MEMORY_REGION(data_ + bytes_, kGuardBytes);
  }
  void EndBlock() {
    if (bytes_ == 0) return;
    ASAN_UNPOISON_MEMORY_REGION(data_ + bytes_, kGuardBytes);
    const unsigned char* guard = data_ + bytes_;
    if (!std::all_of(guard, guard + kGuardBytes,
                     [](unsigned char byte) { return byte == 0xff; })) {
      Fail("a write behind the end of shared memory");
    }
  }

 private:
  static constexpr size_t kGuardBytes = 256;
  const size_t bytes_;
  unsigned char* data_ = nullptr;
};

std::mt19937_64 choices(0);

FiberPool& Fibers() {
  static FiberPool fibers;
  return fibers;
}

class Block {
 public:
  Block(const LaunchShape& shape, absl::FunctionRef<void()> body)
      : shared(shape.shared_bytes),
        shape_(shape),
        body_(body),
        lanes_(shape.threads),
        warps_(shape.threads / kWarp) {}

  void Run(GridShape index);

  Place place;
  SharedBytes shared;

  Lane& lane() { return lanes_[place.thread]; }
  Warp& warp() { return warps_[place.thread / kWarp]; }
  void Pause(Wait wait) {
    lane().wait = wait;
    Fibers().Yield();
  }

 private:
  int PickWarp() const;
  void RunWarp(int warp);
  bool ReleaseWarp(int warp);
  bool ReleaseBlock();
  bool HasEnded() const;

  const LaunchShape shape_;
  absl::FunctionRef<void()> body_;
  std::vector<Lane> lanes_;
  std::vector<Warp> warps_;
};

Block* running = nullptr;

void Block::Run(GridShape index) {
  shared.BeginBlock();
  place.block = index;
  place.grid = shape_.grid;
  place.threads = shape_.threads;
  for (Lane& lane : lanes_) {
    lane.wait = Wait::kNone;
    lane.exchanges = 0;
    lane.awaited = false;
  }
  Fibers().Start(shape_.threads, [this] {
    body_();
    if (!lane().open.empty() || !lane().groups.empty()) {
      Fail("a thread ended before it had waited for its copies");
    }
  });
  while (!HasEnded()) {
    const int warp = PickWarp();
    if (warp >= 0) {
      RunWarp(warp);
    } else if (!ReleaseBlock()) {
      Fail("threads wait at different barriers, or for some that ended");
    }
  }
  shared.EndBlock();
}

bool Block::HasEnded() const {
  return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) {
    return lane.wait == Wait::kEnded;
  });
}

// Any one that can go on; -1: none.
int Block::PickWarp() const {
  int picked = -1;
  uint64_t seen = 0;
  for (size_t thread = 0; thread < lanes_.size(); ++thread) {
    if (lanes_[thread].wait != Wait::kNone) continue;
    const int warp = static_cast<int>(thread) / kWarp;
    if (choices() % ++seen == 0) picked = warp;
    thread = (warp + 1) * kWarp - 1;
  }
  return picked;
}

// On for a random number of its own barriers.
void Block::RunWarp(int warp) {
  int order[kWarp];
  std::iota(order, order + kWarp, warp * kWarp);
  do {
    std::shuffle(order, order + kWarp, choices);
    for (const int thread : order) {
      if (lanes_[thread].wait != Wait::kNone) continue;
      place.thread = thread;
      if (Fibers().Resume(thread)) lanes_[thread].wait = Wait::kEnded;
    }
  } while (ReleaseWarp(warp) && choices() % 8 != 0);
}

// Lets the threads of a warp go if they all wait for each other.
bool Block::ReleaseWarp(int warp) {
  const auto begin = lanes_.begin() + warp * kWarp;
  const auto end = begin + kWarp;
  const auto all = [&](auto condition) {
    return std::all_of(begin, end, condition);
  };
  const bool exchange =
      all([](const Lane& lane) { return lane.wait == Wait::kExchange; });
  const bool barrier = all([](const Lane& lane) {
    return lane.wait == Wait::kWarp || lane.wait == Wait::kEnded;
  });
  if (!exchange && !barrier) return false;
  if (exchange && !all([&](const Lane& lane) {
        return lane.exchanged_bytes == begin->exchanged_bytes;
      })) {
    Fail("threads of a warp exchange different things");
  }
  bool any = false;
  for (auto lane = begin; lane != end; ++lane) {
    if (lane->wait == Wait::kEnded) continue;
    lane->wait = Wait::kNone;
    any = true;
  }
  return any;
}

bool Block::ReleaseBlock() {
  const bool all = std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& l) {
    return l.wait == Wait::kBlock || l.wait == Wait::kEnded;
  });
  if (!all) return false;
  for (Lane& lane : lanes_) {
    if (lane.wait == Wait::kBlock) lane.wait = Wait::kNone;
  }
  return true;
}

}  // namespace

const Place& CurrentPlace() { return running->place; }

unsigned char* SharedMemory() { return running->shared.data(); }
bool IsShared(const void* data, size_t bytes) {
  return running->shared.Has(data, bytes);
}

void BlockBarrier() { running->Pause(Wait::kBlock); }
void WarpBarrier() { running->Pause(Wait::kWarp); }
void AwaitEarlierKernels() { running->lane().awaited = true; }
void CheckAwaited() {
  if (running->lane().awaited) return;
  Fail("a thread ended before it had waited for earlier kernels");
}

const unsigned char (*Exchange(const void* mine, size_t bytes))[64] {
  if (bytes > 64) Fail("an exchange of more than 64 bytes");
  Lane& lane = running->lane();
  auto& given = running->warp().given[lane.exchanges++ % 2];
  std::memcpy(given[running->place.thread % kWarp], mine, bytes);
  lane.exchanged_bytes = bytes;
  running->Pause(Wait::kExchange);
  return given;
}

void CopyLater(void* to, const void* from, size_t bytes, bool valid) {
  const auto misaligned = [bytes](const void* pointer) {
    return reinterpret_cast<uintptr_t>(pointer) % bytes != 0;
  };
  if (bytes != 4 && bytes != 8 && bytes != 16) Fail("a copy of odd size");
  if (misaligned(to) || misaligned(from)) Fail("a copy that is not aligned");
  if (!IsShared(to, bytes)) Fail("a copy to what is not shared memory");
  const Copy copy = {to, valid ? from : nullptr, bytes};
  if (choices() % 2 == 0) {
    Carry(copy);
  } else {
    running->lane().open.push_back(copy);
  }
}

void CloseCopies() {
  Lane& lane = running->lane();
  lane.groups.push_back(std::move(lane.open));
  lane.open.clear();
}

void FinishCopies(int left) {
  Lane& lane = running->lane();
  while (static_cast<int>(lane.groups.size()) > left) {
    for (const Copy& copy : lane.groups.front()) Carry(copy);
    lane.groups.erase(lane.groups.begin());
  }
}

void Launch(const LaunchShape& shape, absl::FunctionRef<void()> body) {
  if (running != nullptr) Fail("a launch inside of a launch");
  if (const char* error = ShapeError(shape)) Fail(error);
  Block block(shape, body);
  running = &block;
  const GridShape& grid = shape.grid;
  std::vector<int64_t> order(int64_t{grid.x} * grid.y * grid.z);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), choices);
  for (const int64_t index : order) {
    block.Run({static_cast<int>(index % grid.x),
               static_cast<int>(index / grid.x % grid.y),
               static_cast<int>(index / grid.x / grid.y)});
  }
  running = nullptr;
}

void Fail(const char* what) {
  std::fprintf(stderr, "emulated kernel: %s\n", what);
  std::abort();
}

void SetSeed(uint64_t seed) { choices.seed(seed); }
uint64_t Random() { return choices(); }

}  // namespace txl::cuda::emulator
