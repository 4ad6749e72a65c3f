#pragma once

#include "model/config/model_config.h"
#include "model/sampling/distribution.h"

namespace txl {

// Where the bins of the model's adaptive softmax end; one bin for a plain one.
inline VocabularyBins BinsOf(const ModelConfig& config) {
  VocabularyBins bins{config.cutoffs};
  bins.ends.push_back(config.vocab_size);
  return bins;
}

}  // namespace txl
