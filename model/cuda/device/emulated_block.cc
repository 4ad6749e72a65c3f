#include "model/cuda/device/emulated_block.h"

#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "model/cuda/device/fiber.h"

namespace txl::cuda::emulator {
namespace {

enum class Wait { kNone, kBlock, kWarp, kEnded };

struct Copy {
  void* to;
  const void* source;
  size_t bytes;
};

// One thread of the block.
struct Lane {
  Wait wait = Wait::kNone;
  std::vector<std::vector<Copy>> groups;  // closed ones
  std::vector<Copy> open;
  // Results of the last exchange: the warp's own may be overwritten by then.
  unsigned char received[kWarp][64];
};

struct Warp {
  unsigned char given[kWarp][64];
};

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "emulated kernel: %s\n", what);
  std::abort();
}

class Block {
 public:
  Block(const LaunchShape& shape, absl::FunctionRef<void()> body,
        std::mt19937_64& random)
      : shape_(shape),
        body_(body),
        random_(random),
        lanes_(shape.threads),
        warps_(shape.threads / kWarp) {}

  void Run(GridShape index);

  Place place;
  unsigned char* shared = nullptr;

  Lane& lane() { return lanes_[place.thread]; }
  Warp& warp() { return warps_[place.thread / kWarp]; }
  void Pause(Wait wait) {
    lane().wait = wait;
    fibers_->Yield();
  }

 private:
  bool Release();
  bool ReleaseWarp(int warp);

  const LaunchShape shape_;
  absl::FunctionRef<void()> body_;
  std::mt19937_64& random_;
  std::vector<Lane> lanes_;
  std::vector<Warp> warps_;
  FiberPool* fibers_ = nullptr;

 public:
  void set_fibers(FiberPool* fibers) { fibers_ = fibers; }
};

Block* running = nullptr;
std::mt19937_64 orders;

void Block::Run(GridShape index) {
  // Exactly as many bytes as the kernel asked for, so that a sanitizer sees
  // what lies beyond; 0xff is NaN in every format.
  unsigned char* memory = static_cast<unsigned char*>(
      std::aligned_alloc(128, (shape_.shared_bytes + 127) / 128 * 128 + 128));
  std::memset(memory, 0xff, shape_.shared_bytes);
  shared = memory;
  place.block = index;
  place.grid = shape_.grid;
  place.threads = shape_.threads;
  for (Lane& lane : lanes_) lane.wait = Wait::kNone;
  std::vector<int> order(lanes_.size());
  std::iota(order.begin(), order.end(), 0);
  fibers_->Start(shape_.threads, [this] {
    body_();
    if (!lane().open.empty() || !lane().groups.empty()) {
      Fail("a thread ended before its copies did");
    }
  });
  while (true) {
    std::shuffle(order.begin(), order.end(), random_);
    for (const int thread : order) {
      if (lanes_[thread].wait != Wait::kNone) continue;
      place.thread = thread;
      if (fibers_->Resume(thread)) lanes_[thread].wait = Wait::kEnded;
    }
    const bool ended =
        std::all_of(lanes_.begin(), lanes_.end(),
                    [](const Lane& lane) { return lane.wait == Wait::kEnded; });
    if (ended) break;
    if (!Release()) Fail("threads wait at different barriers");
  }
  std::free(memory);
  shared = nullptr;
}

// Lets go whoever waits for nobody any more; false: nobody does.
bool Block::Release() {
  bool released = false;
  bool all_at_block = true;
  for (size_t warp = 0; warp < warps_.size(); ++warp) {
    released |= ReleaseWarp(static_cast<int>(warp));
  }
  for (const Lane& lane : lanes_) {
    all_at_block &= lane.wait == Wait::kBlock || lane.wait == Wait::kEnded;
  }
  if (!all_at_block) return released;
  for (Lane& lane : lanes_) {
    if (lane.wait == Wait::kBlock) lane.wait = Wait::kNone;
  }
  return true;
}

bool Block::ReleaseWarp(int warp) {
  const auto begin = lanes_.begin() + warp * kWarp;
  const auto end = begin + kWarp;
  const bool all = std::all_of(begin, end, [](const Lane& lane) {
    return lane.wait == Wait::kWarp || lane.wait == Wait::kEnded;
  });
  bool any = false;
  for (auto lane = begin; all && lane != end; ++lane) {
    if (lane->wait != Wait::kWarp) continue;
    lane->wait = Wait::kNone;
    any = true;
  }
  return any;
}

void Carry(const Copy& copy) {
  if (copy.source == nullptr) {
    std::memset(copy.to, 0, copy.bytes);
  } else {
    std::memcpy(copy.to, copy.source, copy.bytes);
  }
}

}  // namespace

const Place& CurrentPlace() { return running->place; }

unsigned char* SharedMemory() { return running->shared; }

void BlockBarrier() { running->Pause(Wait::kBlock); }
void WarpBarrier() { running->Pause(Wait::kWarp); }

const unsigned char (*Exchange(const void* mine, size_t bytes))[64] {
  if (bytes > 64) Fail("an exchange of more than 64 bytes");
  Warp& warp = running->warp();
  std::memcpy(warp.given[running->place.thread % kWarp], mine, bytes);
  WarpBarrier();
  Lane& lane = running->lane();
  std::memcpy(lane.received, warp.given, sizeof(warp.given));
  WarpBarrier();
  return lane.received;
}

void CopyLater(void* to, const void* source, size_t bytes) {
  const auto misaligned = [bytes](const void* pointer) {
    return reinterpret_cast<uintptr_t>(pointer) % bytes != 0;
  };
  if (bytes != 4 && bytes != 8 && bytes != 16) Fail("a copy of odd size");
  if (misaligned(to) || misaligned(source)) Fail("a copy that is not aligned");
  running->lane().open.push_back({to, source, bytes});
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
  if (shape.threads < 1 || shape.threads > 1024 || shape.threads % kWarp != 0) {
    Fail("a block's threads are not 32 to 1024 in whole warps");
  }
  static FiberPool fibers;
  Block block(shape, body, orders);
  block.set_fibers(&fibers);
  running = &block;
  const GridShape& grid = shape.grid;
  std::vector<int64_t> order(int64_t{grid.x} * grid.y * grid.z);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), orders);
  for (const int64_t index : order) {
    block.Run({static_cast<int>(index % grid.x),
               static_cast<int>(index / grid.x % grid.y),
               static_cast<int>(index / grid.x / grid.y)});
  }
  running = nullptr;
}

void SetSeed(uint64_t seed) { orders.seed(seed); }

}  // namespace txl::cuda::emulator
