#pragma once

// Between a caller's rows and the arrays that travel with a step that samples.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "model/cuda/step/step_input.h"
#include "model/cuda/step/step_results.h"
#include "model/step/sampling_step.h"

namespace txl::cuda {

// Rows of a step: all, and those with an output, which are its wanted rows.
struct CallerRows {
  std::vector<StepRow> rows;
  int64_t wanted = 0;
  bool has_top = false;  // somebody asks for best or named words
};

CallerRows CountRows(absl::Span<const StepRow> rows);

// Writes a buffer of an input of `max_rows` rows, the named ids only for rows
// with `has_top`; what is behind the caller's rows are rows that do not exist.
// REQUIRES: as SamplingStep::Queue.
void WriteRows(const CallerRows& rows, int64_t max_rows, int buffer,
               StepInput& input);

// What the step's results say of each row.
std::vector<RowResult> ReadRows(const CallerRows& rows,
                                const ResultArrays& results);

// Sums of list_ends [passes, clusters] over the passes.
std::vector<int64_t> SumListEnds(const ResultArrays& results, int64_t passes,
                                 size_t clusters);

}  // namespace txl::cuda
