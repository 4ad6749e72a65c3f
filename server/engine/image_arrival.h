#pragma once

// An imported image on its way to its slot, waited for by who asked for it and
// by who uses the slot.

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "model/step/sampling_step.h"

namespace txl {

// Thread-safe.
class ImageArrival {
 public:
  struct Outcome {
    absl::Status refused;  // the image's fault: nothing was changed
    absl::Status broken;   // the device's: nobody knows the slot's rows
    const absl::Status& status() const {
      return refused.ok() ? broken : refused;
    }
  };

  explicit ImageArrival(std::unique_ptr<StateArrival> arrival);

  // The first call brings it, the others wait for that one.
  Outcome Bring();

 private:
  absl::Mutex mutex_;
  std::unique_ptr<StateArrival> arrival_ ABSL_GUARDED_BY(mutex_);  // until then
  Outcome outcome_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace txl
