#include "server/engine/image_arrival.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace txl {
namespace {

// Does what it is told, once.
class ToldArrival final : public StateArrival {
 public:
  explicit ToldArrival(std::function<absl::Status()> bring)
      : bring_(std::move(bring)) {}
  absl::Status Bring() override {
    EXPECT_FALSE(std::exchange(was_brought_, true));
    return bring_();
  }

 private:
  const std::function<absl::Status()> bring_;
  bool was_brought_ = false;
};

std::unique_ptr<StateArrival> Told(std::function<absl::Status()> bring) {
  return std::make_unique<ToldArrival>(std::move(bring));
}

TEST(ImageArrivalTest, WhatArrivedIsNeitherRefusedNorBroken) {
  ImageArrival arrival(Told([] { return absl::OkStatus(); }));
  for (int i = 0; i < 2; ++i) {
    const ImageArrival::Outcome outcome = arrival.Bring();
    EXPECT_TRUE(outcome.refused.ok());
    EXPECT_TRUE(outcome.broken.ok());
    EXPECT_TRUE(outcome.status().ok());
  }
}

TEST(ImageArrivalTest, ARefusedImageBreaksNothing) {
  const absl::Status refused = absl::DataLossError("state image: checksum");
  ImageArrival arrival(Told([&] { return refused; }));
  for (int i = 0; i < 2; ++i) {
    const ImageArrival::Outcome outcome = arrival.Bring();
    EXPECT_EQ(outcome.refused, refused);
    EXPECT_TRUE(outcome.broken.ok());
    EXPECT_EQ(outcome.status(), refused);
  }
}

TEST(ImageArrivalTest, AnErrorOfTheDeviceIsNotTheImagesFault) {
  ImageArrival arrival(
      Told([]() -> absl::Status { throw std::runtime_error("device lost"); }));
  for (int i = 0; i < 2; ++i) {
    const ImageArrival::Outcome outcome = arrival.Bring();
    EXPECT_TRUE(outcome.refused.ok());
    EXPECT_EQ(outcome.broken,
              absl::InternalError("importing a state: device lost"));
    EXPECT_EQ(outcome.status(), outcome.broken);
  }
}

TEST(ImageArrivalTest, ManyThreadsWaitForOne) {
  const absl::Status refused = absl::InvalidArgumentError("another model's");
  ImageArrival arrival(Told([&] {
    std::this_thread::yield();
    return refused;
  }));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(arrival.Bring().status(), refused); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace txl
