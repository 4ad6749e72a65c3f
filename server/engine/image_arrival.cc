#include "server/engine/image_arrival.h"

#include <utility>

#include "server/engine/device_errors.h"

namespace txl {

ImageArrival::ImageArrival(std::unique_ptr<StateArrival> arrival)
    : arrival_(std::move(arrival)) {}

ImageArrival::Outcome ImageArrival::Bring() {
  absl::MutexLock lock(&mutex_);
  if (arrival_ == nullptr) return outcome_;
  StateArrival& arrival = *arrival_;
  absl::Status refused;
  outcome_.broken = CatchDeviceErrors("importing a state", [&] {
    refused = arrival.Bring();
    return absl::OkStatus();
  });
  outcome_.refused = refused;
  arrival_ = nullptr;
  return outcome_;
}

}  // namespace txl
