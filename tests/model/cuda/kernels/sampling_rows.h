#pragma once

// Random rows with random parameters.

#include <random>
#include <string>
#include <vector>

#include "tests/model/cuda/kernels/sampling_step.h"

namespace txl::cuda {

// Shapes of vocabularies: without clusters, with one, with many, of sizes that
// are no multiple of anything.
std::vector<VocabularyBins> ManyBins();

// Temperature, filters, penalties, biases, bans, allowed ids, kinds, best and
// named words each at times; logits that are equal at times, words that are
// impossible at times.
RowToSample AnyRow(std::mt19937& random, const VocabularyBins& bins);

// Its parameters, for messages.
std::string Describe(const RowToSample& row);

// Expects what SampleOnHost says of every row.
void ExpectAsOnHost(const VocabularyBins& bins,
                    const std::vector<RowToSample>& rows,
                    const StepOptions& options);

}  // namespace txl::cuda
