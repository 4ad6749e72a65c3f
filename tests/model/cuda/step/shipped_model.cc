#include "tests/model/cuda/step/shipped_model.h"

#include <stdexcept>
#include <utility>

#include "model/checkpoint/model_directory.h"
#include "model/cpu/native_step.h"
#include "tests/model/golden_paths.h"

namespace txl {
namespace {

// Sonnets, which no play of the training text holds, in a play's form.
constexpr char kText[] =
    "FIRST SPEAKER:\n"
    "Shall I compare thee to a summer's day?\n"
    "Thou art more lovely and more temperate:\n"
    "Rough winds do shake the darling buds of May,\n"
    "And summer's lease hath all too short a date:\n"
    "\n"
    "SECOND SPEAKER:\n"
    "Sometime too hot the eye of heaven shines,\n"
    "And often is his gold complexion dimm'd,\n"
    "And every fair from fair sometime declines,\n"
    "By chance, or nature's changing course untrimm'd:\n"
    "But thy eternal summer shall not fade,\n"
    "Nor lose possession of that fair thou ow'st.\n"
    "\n"
    "FIRST SPEAKER:\n"
    "When in disgrace with fortune and men's eyes\n"
    "I all alone beweep my outcast state,\n"
    "And trouble deaf heaven with my bootless cries,\n"
    "And look upon myself, and curse my fate,\n"
    "Wishing me like to one more rich in hope,\n"
    "Featur'd like him, like him with friends possess'd.\n";

template <typename T>
T ValueOrThrow(absl::StatusOr<T> value) {
  if (!value.ok()) throw std::runtime_error(value.status().ToString());
  return *std::move(value);
}

}  // namespace

ShippedModel LoadShippedModel() {
  const ModelDirectory directory =
      ValueOrThrow(OpenModelDirectory(TestData() + "/../models/shakespeare"));
  ShippedModel model;
  model.config = directory.config;
  model.weights = ValueOrThrow(LoadDirectoryWeights(directory, {}));
  model.text = ValueOrThrow(directory.vocabulary->Encode(kText));
  return model;
}

std::unique_ptr<ModelStep> MakeShippedOracle(const ShippedModel& model,
                                             int64_t slots) {
  NativeStepOptions options;
  options.slots = slots;
  auto step =
      ValueOrThrow(CreateNativeStep(model.config, model.weights, options));
  for (int32_t slot = 0; slot < slots; ++slot) step->Clear(slot);
  return step;
}

}  // namespace txl
