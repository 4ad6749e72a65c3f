// Any text as a config.json: an error or a config that survives being written.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "model/config/model_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(data, data + size);
  const auto config = txl::ParseModelConfig(text, "config.json");
  if (!config.ok()) return 0;
  const std::string written = txl::ModelConfigToJson(*config);
  const auto again = txl::ParseModelConfig(written, "config.json");
  if (!again.ok() || txl::ModelConfigToJson(*again) != written) abort();
  // What the server computes of any config that it accepts.
  for (int64_t bin = 0; bin < config->n_bins(); ++bin) {
    if (config->bin_size(bin) < 1 || config->bin_width(bin) < 1) abort();
  }
  if (config->serving_window() < 1) abort();
  if (config->position_distances() < 1) abort();
  return 0;
}
