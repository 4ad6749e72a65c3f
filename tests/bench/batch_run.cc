#include "tests/bench/batch_run.h"

#include <random>
#include <utility>

#include "model/base/status_macros.h"

namespace txl {
namespace {

// Prompts first, then whatever was generated.
BatchTokens RandomPrompts(const BatchOptions& options, int64_t vocab) {
  std::minstd_rand random(1);
  std::uniform_int_distribution<int64_t> ids(0, vocab - 1);
  BatchTokens sequences(options.sequences);
  for (std::vector<int32_t>& sequence : sequences) {
    for (int64_t i = 0; i < options.prompt_tokens; ++i) {
      sequence.push_back(static_cast<int32_t>(ids(random)));
    }
  }
  return sequences;
}

// Feeds each sequence from position `begin` on and appends what comes next.
absl::Status Step(StepRunner* runner, int64_t begin, BatchTokens& sequences) {
  StepPlan plan;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const int64_t end = std::ssize(sequences[i]);
    for (int64_t t = begin; t < end; ++t) {
      StepRow row;
      row.slot = static_cast<int32_t>(i);
      row.position = t;
      row.kind = t + 1 == end ? RowKind::kDecode : RowKind::kPrefill;
      row.token_id = sequences[i][t];
      plan.rows.push_back(row);
    }
  }
  TXL_ASSIGN_OR_RETURN(const StepResult result,
                       runner->Collect(runner->Submit(std::move(plan))));
  const size_t rows = result.rows.size() / sequences.size();
  for (size_t i = 0; i < sequences.size(); ++i) {
    const RowResult& last = result.rows[(i + 1) * rows - 1];
    TXL_RETURN_IF_ERROR(last.status);
    sequences[i].push_back(last.token_id);
  }
  return absl::OkStatus();
}

absl::StatusOr<BatchTokens> Generate(StepRunner* runner,
                                     const BatchOptions& options,
                                     bool with_memory) {
  BatchTokens sequences = RandomPrompts(options, runner->info().vocab_size);
  SlotSampling greedy;
  greedy.params.temperature = 0;
  for (int32_t slot = 0; slot < options.sequences; ++slot) {
    runner->Clear(slot);
    runner->Configure(slot, greedy);
  }
  for (int64_t i = 0; i < options.generated_tokens; ++i) {
    const int64_t fed = options.prompt_tokens + i - 1;  // by the step before
    TXL_RETURN_IF_ERROR(
        Step(runner, with_memory && i > 0 ? fed : 0, sequences));
  }
  for (std::vector<int32_t>& sequence : sequences) {
    sequence.erase(sequence.begin(), sequence.begin() + options.prompt_tokens);
  }
  return sequences;
}

}  // namespace

absl::StatusOr<BatchTokens> GenerateWithMemory(StepRunner* runner,
                                               const BatchOptions& options) {
  return Generate(runner, options, true);
}

absl::StatusOr<BatchTokens> GenerateRecomputing(StepRunner* runner,
                                                const BatchOptions& options) {
  return Generate(runner, options, false);
}

}  // namespace txl
