// What the emulated device does later than one might hope.

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "model/cuda/device/runtime.h"
#include "tests/model/cuda/device_data.h"

namespace txl::cuda {
namespace {

constexpr int kSeeds = 100;

TEST(RuntimeEmulatedTest, AHostThatDoesNotWaitMayReadWhatWasThereBefore) {
  int too_early = 0;
  const Array<int> there = ToDevice<int>({7});
  for (int seed = 0; seed < kSeeds; ++seed) {
    ShuffleThreads(seed);
    const Array<int> host(MemoryKind::kPinned, 1);
    host.data()[0] = 0;
    Stream stream;
    stream.Copy(host.data(), there.data(), sizeof(int));
    if (host.data()[0] != 7) ++too_early;
    stream.Wait();
    EXPECT_EQ(host.data()[0], 7);
  }
  EXPECT_GT(too_early, kSeeds / 4);
  EXPECT_LT(too_early, kSeeds * 3 / 4);
}

TEST(RuntimeEmulatedTest, AHostThatWritesTooSoonChangesWhatIsCopied) {
  int wrong = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    ShuffleThreads(seed);
    const Array<int> host(MemoryKind::kPinned, 1);
    const Array<int> there = Unwritten<int>(1);
    Stream stream;
    host.data()[0] = 1;
    stream.Copy(there.data(), host.data(), sizeof(int));
    host.data()[0] = 2;
    stream.Wait();
    if (ToHost(there)[0] != 1) ++wrong;
  }
  EXPECT_GT(wrong, kSeeds / 4);
}

TEST(RuntimeEmulatedTest, StreamsThatDoNotWaitForEachOtherMayOvertake) {
  int overtaken = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    ShuffleThreads(seed);
    const Array<int> from = ToDevice<int>({5});
    const Array<int> between = ToDevice<int>({0});
    const Array<int> to = ToDevice<int>({0});
    Stream first, second;
    first.Copy(between.data(), from.data(), sizeof(int));
    second.Copy(to.data(), between.data(), sizeof(int));
    second.Wait();
    if (ToHost(to)[0] != 5) ++overtaken;
  }
  EXPECT_GT(overtaken, kSeeds / 4);
}

TEST(RuntimeEmulatedTest, GivingMemoryBackWaitsForTheWorkThatUsesIt) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    ShuffleThreads(seed);
    const Array<int> there = ToDevice<int>({0});
    Stream stream;
    {
      const Array<int> short_lived = ToDevice<int>({3});
      stream.Copy(there.data(), short_lived.data(), sizeof(int));
    }
    EXPECT_EQ(ToHost(there)[0], 3);
  }
}

TEST(RuntimeEmulatedTest, TakenMemoryCountsUntilItIsGivenBack) {
  const size_t before = CurrentDevice().free_bytes;
  {
    const Memory memory(MemoryKind::kDevice, 1000);
    EXPECT_EQ(CurrentDevice().free_bytes, before - 1000);
  }
  EXPECT_EQ(CurrentDevice().free_bytes, before);
}

TEST(RuntimeEmulatedTest, ACaptureRefusesEventsGraphsAndMemoryThatIsGivenBack) {
  Stream stream;
  Event event;
  Array<int> array = Unwritten<int>(10);
  const std::unique_ptr<Graph> graph = Graph::Capture(stream, [] {});
  EXPECT_THROW(Graph::Capture(stream, [&] { stream.Record(event); }),
               DeviceError);
  EXPECT_THROW(Graph::Capture(stream, [&] { stream.WaitFor(event); }),
               DeviceError);
  EXPECT_THROW(Graph::Capture(stream, [&] { event.Wait(); }), DeviceError);
  EXPECT_THROW(Graph::Capture(stream, [&] { graph->Launch(stream); }),
               DeviceError);
  EXPECT_THROW(Graph::Capture(stream, [&] { Graph::Capture(stream, [] {}); }),
               DeviceError);
  EXPECT_THROW(Graph::Capture(stream, [&] { array = Array<int>(); }),
               DeviceError);
  // And none of this lasts.
  Graph::Capture(stream, [&] { stream.Fill(nullptr, 0, 0); });
}

}  // namespace
}  // namespace txl::cuda
