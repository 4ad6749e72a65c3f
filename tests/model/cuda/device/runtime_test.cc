#include "model/cuda/device/runtime.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/model/cuda/device/device_kernels.h"
#include "tests/model/cuda/device_data.h"

namespace txl::cuda {
namespace {

constexpr int64_t kSize = 5000;
constexpr LaunchShape kShape = {{4}, 128};

std::vector<int> Numbers(int first) {
  std::vector<int> numbers(kSize);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

void AddOne(Stream& stream, const Array<int>& from, const Array<int>& to) {
  LaunchAddOne(stream, kShape, from.data(), to.data(), kSize);
}

TEST(RuntimeTest, TheDeviceSaysWhatItIs) {
  ASSERT_GE(DeviceCount(), 1);
  UseDevice(0);
  const DeviceFacts facts = CurrentDevice();
  EXPECT_FALSE(facts.name.empty());
  EXPECT_GE(facts.capability, 80);  // what the kernels are compiled for
  EXPECT_GE(facts.processors, 1);
  EXPECT_GT(facts.free_bytes, 0u);
  EXPECT_LE(facts.free_bytes, facts.total_bytes);
  EXPECT_GE(facts.shared_bytes, size_t{48} << 10);
  EXPECT_THROW(UseDevice(DeviceCount()), DeviceError);
}

TEST(RuntimeTest, WhatGoesToTheDeviceComesBack) {
  const std::vector<int> numbers = Numbers(3);
  EXPECT_EQ(ToHost(ToDevice(numbers)), numbers);
  EXPECT_EQ(ToHost(ToDevice(std::vector<int>())), std::vector<int>());
}

TEST(RuntimeTest, UnwrittenMemoryOfTestsIsNan) {
  for (const float x : ToHost(Unwritten<float>(100))) EXPECT_NE(x, x);
}

TEST(RuntimeTest, PinnedMemoryIsCopiedFromAndTo) {
  const Array<int> in(MemoryKind::kPinned, kSize);
  const Array<int> out(MemoryKind::kPinned, kSize);
  const Array<int> there = Unwritten<int>(kSize);
  std::iota(in.data(), in.data() + kSize, 5);
  Stream stream;
  stream.Copy(there.data(), in.data(), in.bytes());
  stream.Copy(out.data(), there.data(), out.bytes());
  stream.Wait();
  EXPECT_EQ(std::vector<int>(out.data(), out.data() + kSize), Numbers(5));
}

TEST(RuntimeTest, MemoryMovesWithItsOwner) {
  Array<int> first = ToDevice(Numbers(1));
  const int* const data = first.data();
  Array<int> second = std::move(first);
  EXPECT_EQ(second.data(), data);
  first = ToDevice(Numbers(2));
  second = std::move(first);
  EXPECT_EQ(ToHost(second), Numbers(2));
  EXPECT_EQ(second.size(), kSize);
  EXPECT_EQ(second.bytes(), kSize * static_cast<int64_t>(sizeof(int)));
}

TEST(RuntimeTest, MemoryThatIsGivenBackCanBeTakenAgain) {
  // Three quarters of all memory, more often than it is there.
  const int64_t bytes =
      static_cast<int64_t>(CurrentDevice().free_bytes / 4 * 3);
  for (int i = 0; i < 3; ++i) {
    const Array<char> large(MemoryKind::kDevice, bytes);
    EXPECT_NE(large.data(), nullptr);
  }
}

TEST(RuntimeTest, TooMuchMemoryIsRefusedAndAllElseGoesOn) {
  const Array<int> from = ToDevice(Numbers(0));
  const Array<int> to = Unwritten<int>(kSize);
  const int64_t too_much =
      static_cast<int64_t>(CurrentDevice().total_bytes) + 1;
  try {
    const Array<char> array(MemoryKind::kDevice, too_much);
    FAIL() << "there was room";
  } catch (const DeviceOutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(too_much)),
              std::string::npos);
  }
  Stream stream;
  AddOne(stream, from, to);
  stream.Wait();
  EXPECT_EQ(ToHost(to), Numbers(1));
}

TEST(RuntimeTest, PiecesGoFromOnePitchToAnother) {
  // 3 pieces of 4 numbers out of rows of 10 into rows of 7.
  const Array<int> from = ToDevice(Numbers(0));
  const Array<int> to = ToDevice(std::vector<int>(21, -1));
  Stream stream;
  stream.CopyPieces(to.data(), from.data() + 2,
                    {.bytes = 16, .rows = 3, .to_pitch = 28, .from_pitch = 40});
  stream.Wait();
  std::vector<int> expected(21, -1);
  for (int row = 0; row < 3; ++row) {
    for (int i = 0; i < 4; ++i) expected[7 * row + i] = 10 * row + 2 + i;
  }
  EXPECT_EQ(ToHost(to), expected);
}

TEST(RuntimeTest, PiecesThatOverlapAreRefused) {
  const Array<int> array = Unwritten<int>(100);
  Stream stream;
  EXPECT_THROW(stream.CopyPieces(
                   array.data(), array.data() + 50,
                   {.bytes = 16, .rows = 2, .to_pitch = 12, .from_pitch = 16}),
               DeviceError);
  stream.Wait();
}

TEST(RuntimeTest, NothingMayBeCopiedAndFilled) {
  Stream stream;
  stream.Copy(nullptr, nullptr, 0);
  stream.CopyPieces(nullptr, nullptr, {});
  stream.Fill(nullptr, 0, 0);
  stream.Wait();
}

TEST(RuntimeTest, FillingSetsBytes) {
  const Array<uint8_t> array = ToDevice(std::vector<uint8_t>(10, 1));
  Stream stream;
  stream.Fill(array.data() + 2, 0xab, 3);
  stream.Wait();
  EXPECT_EQ(ToHost(array),
            (std::vector<uint8_t>{1, 1, 0xab, 0xab, 0xab, 1, 1, 1, 1, 1}));
}

TEST(RuntimeTest, AStreamDoesItsWorkInOrder) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    ShuffleThreads(seed);
    const Array<int> a = ToDevice(Numbers(0));
    const Array<int> b = Unwritten<int>(kSize);
    Stream stream;
    for (int i = 0; i < 10; ++i) {
      AddOne(stream, a, b);
      stream.Copy(a.data(), b.data(), a.bytes());
    }
    stream.Wait();
    EXPECT_EQ(ToHost(a), Numbers(10));
  }
}

TEST(RuntimeTest, AnEventOrdersStreamsAndTellsTheHost) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    ShuffleThreads(seed);
    const Array<int> a = ToDevice(Numbers(0));
    const Array<int> b = Unwritten<int>(kSize);
    const Array<int> c = Unwritten<int>(kSize);
    const Array<int> host(MemoryKind::kPinned, kSize);
    Stream first, second;
    Event written, copied;
    AddOne(first, a, b);
    first.Record(written);
    second.WaitFor(written);
    AddOne(second, b, c);
    second.Copy(host.data(), c.data(), c.bytes());
    second.Record(copied);
    copied.Wait();
    EXPECT_EQ(std::vector<int>(host.data(), host.data() + kSize), Numbers(2));
    written.Wait();
    EXPECT_GE(copied.SecondsSince(written), 0);
  }
}

TEST(RuntimeTest, AnEventThatWasNeverRecordedIsDone) {
  Stream stream;
  Event event;
  event.Wait();
  stream.WaitFor(event);
  stream.Wait();
}

TEST(RuntimeTest, ThreadsUseStreamsOfTheirOwn) {
  std::vector<std::thread> threads;
  std::vector<std::vector<int>> found(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t, &found] {
      for (int i = 0; i < 5; ++i) {
        const Array<int> a = ToDevice(Numbers(100 * t + i));
        const Array<int> b = Unwritten<int>(kSize);
        Stream stream;
        AddOne(stream, a, b);
        stream.Wait();
        found[t] = ToHost(b);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < 4; ++t) EXPECT_EQ(found[t], Numbers(100 * t + 5));
}

TEST(GraphTest, WorkThatIsCapturedRunsWithEveryLaunchAndNotBefore) {
  const Array<int> a = ToDevice(Numbers(0));
  const Array<int> b = ToDevice(Numbers(0));
  Stream stream;
  const std::unique_ptr<Graph> graph = Graph::Capture(stream, [&] {
    AddOne(stream, a, b);
    stream.Copy(a.data(), b.data(), a.bytes());
  });
  stream.Wait();
  EXPECT_EQ(ToHost(a), Numbers(0));
  for (int i = 0; i < 7; ++i) graph->Launch(stream);
  stream.Wait();
  EXPECT_EQ(ToHost(a), Numbers(7));
  // On another stream too, and the captured one works as before.
  Stream other;
  graph->Launch(other);
  other.Wait();
  AddOne(stream, a, b);
  stream.Wait();
  EXPECT_EQ(ToHost(b), Numbers(9));
}

TEST(GraphTest, ReadsWhatLiesInMemoryWhenItIsLaunched) {
  const Array<int> a = ToDevice(Numbers(0));
  const Array<int> b = Unwritten<int>(kSize);
  Stream stream;
  const std::unique_ptr<Graph> graph =
      Graph::Capture(stream, [&] { AddOne(stream, a, b); });
  for (const int first : {10, 20}) {
    CopyTo(a, Numbers(first));
    graph->Launch(stream);
    stream.Wait();
    EXPECT_EQ(ToHost(b), Numbers(first + 1));
  }
}

TEST(GraphTest, ACaptureThatThrowsLeavesTheStreamAsItWas) {
  const Array<int> a = ToDevice(Numbers(0));
  const Array<int> b = Unwritten<int>(kSize);
  Stream stream;
  EXPECT_THROW(Graph::Capture(stream,
                              [&] {
                                AddOne(stream, a, a);
                                throw std::string("a mistake");
                              }),
               std::string);
  AddOne(stream, a, b);
  stream.Wait();
  EXPECT_EQ(ToHost(b), Numbers(1));
}

TEST(GraphTest, WhatACaptureCannotHoldIsRefused) {
  Stream stream;
  const std::vector<std::function<void()>> refused = {
      [&] { stream.Wait(); },
      [&] { const Array<int> array(MemoryKind::kDevice, kSize); },
  };
  const Array<int> a = ToDevice(Numbers(0));
  const Array<int> b = Unwritten<int>(kSize);
  for (const std::function<void()>& call : refused) {
    EXPECT_THROW(Graph::Capture(stream, call), DeviceError);
    AddOne(stream, a, b);
    stream.Wait();
    EXPECT_EQ(ToHost(b), Numbers(1));
  }
}

}  // namespace
}  // namespace txl::cuda
