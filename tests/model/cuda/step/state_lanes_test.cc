// States on their way, against what a map of slots would hold, with the device
// as early and as late as it can be.

#include "model/cuda/step/state_lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "tests/model/cuda/device_data.h"

namespace txl::cuda {
namespace {

using ::testing::HasSubstr;

constexpr int kLayers = 2;
constexpr int kWidth = 5;
constexpr int64_t kMemory = 20;
constexpr int64_t kSlots = 6;

RingGeometry Ring() {
  RingGeometry ring;
  ring.mem_len = kMemory;
  ring.spare = 8;
  ring.window = kMemory + 1;
  return CudaRing(ring);  // 32 rows
}
CudaShape Shape() {
  CudaShape shape;
  shape.layers = kLayers;
  shape.width = kWidth;
  shape.stride = 64;
  return shape;
}

class StateLanesTest : public ::testing::Test {
 protected:
  // Of random rows up to a random position.
  StateImage AnyImage() {
    StateImage image;
    image.identity = identity_;
    image.position = 1 + static_cast<int64_t>(random_() % 100);
    image.rows = std::min(kMemory, image.position);
    image.data.resize(kLayers * image.rows * kWidth * sizeof(float));
    for (uint8_t& byte : image.data) byte = static_cast<uint8_t>(random_());
    image.Seal();
    return image;
  }

  StateIdentity identity_ = {.fingerprint = "f",
                             .window = 0,
                             .mem_len = kMemory,
                             .d_model = kWidth,
                             .n_layer = kLayers,
                             .zero_start = false,
                             .row_dtype = "f32",
                             .kernel = "k"};
  std::mt19937 random_;
  Stream stream_;
  CudaArena<float> arena_{Ring(), Shape(), kSlots, stream_};
};

std::shared_ptr<const StateImage> Shared(const StateImage& image) {
  return std::make_shared<const StateImage>(image);
}

// What was asked for, and what should come.
struct Asked {
  std::unique_ptr<StateTransfer> transfer;
  StateImage expected;
};

TEST_F(StateLanesTest, EveryStateArrivesAsItWas) {
  for (int lanes = 1; lanes <= 4; ++lanes) {
    ShuffleThreads(lanes);
    StateLanes<float> states(arena_, identity_, 0, lanes, stream_);
    std::map<int32_t, StateImage> held;
    std::vector<Asked> asked;
    std::vector<std::unique_ptr<StateArrival>> arriving;
    const auto take = [&](size_t i) {
      const StateImage found = asked[i].transfer->Take();
      EXPECT_EQ(found.data, asked[i].expected.data);
      EXPECT_EQ(found.checksum, asked[i].expected.checksum);
      asked.erase(asked.begin() + static_cast<int64_t>(i));
    };
    for (int i = 0; i < 400; ++i) {
      const int32_t slot = static_cast<int32_t>(random_() % kSlots);
      const int kind = static_cast<int>(random_() % 6);
      if (kind < 2 || !held.contains(slot)) {
        held[slot] = AnyImage();
        arriving.push_back(states.Import(slot, Shared(held[slot])));
      } else if (kind < 4) {
        asked.push_back({states.Export(slot, held[slot].position), held[slot]});
      } else if (kind == 4) {  // as a step would, over all of the slot
        states.Settle(slot);
        arena_.Clear(slot);
        held.erase(slot);
      } else if (!asked.empty() && random_() % 4 == 0) {
        asked.pop_back();  // nobody wants it
      } else if (!arriving.empty()) {
        // At once, or after the slot was used; or nobody asks for it.
        if (random_() % 4 != 0) {
          EXPECT_TRUE(arriving.back()->Bring().ok());
        }
        arriving.pop_back();
      }
      if (asked.size() > 6) take(random_() % asked.size());
    }
    while (!asked.empty()) take(asked.size() - 1);
  }
}

// What lies in a slot once it is settled is what the next work on the stream
// finds there.
TEST_F(StateLanesTest, ASettledSlotIsWhole) {
  StateLanes<float> states(arena_, identity_, 0, 2, stream_);
  const Array<float> there =
      Unwritten<float>(kLayers * kMemory * Shape().stride);
  for (int i = 0; i < 40; ++i) {
    ShuffleThreads(i);
    const StateImage image = AnyImage();
    const auto arrival = states.Import(3, Shared(image));
    if (i % 2 == 0) {
      ASSERT_TRUE(arrival->Bring().ok());
    }
    states.Settle(3);
    arena_.Pack(3, image.position - image.rows, image.position, there.data());
    stream_.Wait();
    const std::vector<float> rows = ToHost(there);
    for (int64_t r = 0; r < kLayers * image.rows; ++r) {
      EXPECT_EQ(std::memcmp(rows.data() + r * Shape().stride,
                            image.data.data() + r * kWidth * sizeof(float),
                            kWidth * sizeof(float)),
                0);
      EXPECT_EQ(rows[r * Shape().stride + kWidth], 0);  // padding
    }
  }
}

// As a server does: one thread brings, the other one uses slots.
TEST_F(StateLanesTest, AnotherThreadBringsWhatThisOneWaitsFor) {
  StateLanes<float> states(arena_, identity_, 0, 2, stream_);
  for (int i = 0; i < 40; ++i) {
    const StateImage images[] = {AnyImage(), AnyImage(), AnyImage()};
    std::vector<std::unique_ptr<StateArrival>> arriving;
    for (int32_t slot = 0; slot < 2; ++slot) {
      arriving.push_back(states.Import(slot, Shared(images[slot])));
    }
    std::thread other([&] {
      for (const auto& arrival : arriving) EXPECT_TRUE(arrival->Bring().ok());
    });
    // There are two lanes: this one waits for the first.
    const auto third = states.Import(2, Shared(images[2]));
    for (int32_t slot = 2; slot >= 0; --slot) {
      EXPECT_EQ(states.Export(slot, images[slot].position)->Take().data,
                images[slot].data);
    }
    other.join();
  }
}

TEST_F(StateLanesTest, AnArrivalSaysAgainHowItEnded) {
  StateLanes<float> states(arena_, identity_, 0, 1, stream_);
  const StateImage own = AnyImage();
  StateImage other = own;
  other.data[0] ^= 1;
  const auto good = states.Import(0, Shared(own));
  const auto bad = states.Import(1, Shared(other));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(good->Bring().ok());
    EXPECT_THAT(bad->Bring().message(), HasSubstr("checksum"));
  }
}

TEST_F(StateLanesTest, AnArrivalMayOutliveTheLanes) {
  std::unique_ptr<StateArrival> brought, left;
  {
    StateLanes<float> states(arena_, identity_, 0, 2, stream_);
    brought = states.Import(0, Shared(AnyImage()));
    left = states.Import(1, Shared(AnyImage()));
  }
  EXPECT_TRUE(brought->Bring().ok());
}

TEST_F(StateLanesTest, ImagesThatDoNotFitAreRefusedAndTheSlotIsAsItWas) {
  StateLanes<float> states(arena_, identity_, 0, 1, stream_);
  const StateImage own = AnyImage();
  const auto bring = [&](const StateImage& image) {
    return states.Import(0, Shared(image))->Bring();
  };
  EXPECT_TRUE(bring(own).ok());
  StateImage other = own;
  other.identity.fingerprint = "g";
  other.Seal();
  EXPECT_THAT(bring(other).message(), HasSubstr("fingerprint"));
  other = own;
  other.position = 3;
  other.rows = 2;
  other.data.resize(kLayers * 2 * kWidth * sizeof(float));
  other.Seal();
  EXPECT_THAT(bring(other).message(), HasSubstr("2 rows at position 3"));
  // Refused, and nobody asked.
  states.Import(0, Shared(other));
  EXPECT_EQ(states.Export(0, own.position)->Take().data, own.data);
}

TEST_F(StateLanesTest, TheFirstPositionHasNoRows) {
  StateLanes<float> states(arena_, identity_, 0, 1, stream_);
  const StateImage image = states.Export(2, 0)->Take();
  EXPECT_EQ(image.rows, 0);
  EXPECT_TRUE(image.data.empty());
  EXPECT_TRUE(states.Import(2, Shared(image))->Bring().ok());
}

TEST(StateLaneBytesTest, AreOfAllRowsPadded) {
  EXPECT_EQ(StateLaneBytes(Ring(), Shape(), 2), kLayers * kMemory * 64 * 2);
}

}  // namespace
}  // namespace txl::cuda
