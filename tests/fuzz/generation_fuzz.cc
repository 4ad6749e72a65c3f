// Any text as a generation.json: an error or defaults that survive being
// written and that a request may inherit.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "model/config/generation_defaults.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kVocabSize = 100;
  const std::string text(data, data + size);
  const auto defaults =
      txl::ParseGenerationDefaults(text, "generation.json", kVocabSize);
  if (!defaults.ok()) return 0;
  const std::string written = txl::GenerationDefaultsToJson(*defaults);
  const auto again =
      txl::ParseGenerationDefaults(written, "generation.json", kVocabSize);
  if (!again.ok() || txl::GenerationDefaultsToJson(*again) != written) abort();
  const txl::SamplingParams params =
      txl::ApplyOverrides(txl::SamplingParams(), defaults->sampling);
  if (!txl::ValidateSamplingParams(params, kVocabSize).ok()) abort();
  return 0;
}
