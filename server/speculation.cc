#include "server/speculation.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/canonical_tensors.h"
#include "model/text/ngram_table.h"
#include "server/base/log.h"
#include "server/engine/load_step_runner.h"
#include "server/torch_threads.h"

namespace txl {
namespace {

uint32_t FingerprintOf(const ModelDirectory& model) {
  return model.vocabulary == nullptr ? 0
                                     : VocabularyFingerprint(*model.vocabulary);
}

}  // namespace

absl::StatusOr<std::optional<ModelDirectory>> OpenDraft(
    const std::string& path, const std::string& speculate,
    const ModelDirectory& model) {
  if (path.empty()) return std::nullopt;
  if (speculate == "off") {
    return absl::InvalidArgumentError(
        "--draft: nothing is guessed with --speculate off");
  }
  TXL_ASSIGN_OR_RETURN(ModelDirectory draft, OpenModelDirectory(path));
  if (draft.config.vocab_size != model.config.vocab_size ||
      FingerprintOf(draft) != FingerprintOf(model)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--draft: ", path, " has another vocabulary than ",
                     model.path, "; its tokens mean something else"));
  }
  return std::make_optional(std::move(draft));
}

StepRunnerOptions DraftOptions(StepRunnerOptions options) {
  options.device = "cpu";
  // What is wrong in its numbers costs time only: there is nothing to test.
  options.step = "native";
  options.form = "auto";
  return options;
}

absl::StatusOr<std::shared_ptr<StepRunner>> LoadDraft(
    const std::optional<ModelDirectory>& draft, const RunnerInfo& info,
    const StepRunnerOptions& options) {
  if (!draft.has_value() || !info.verifies_guesses) return nullptr;
  StepRunnerOptions small = DraftOptions(options);
  small.slots = info.slots;
  small.threads =
      ChooseThreads(0, options.threads, RequiredParameters(draft->config));
  TXL_ASSIGN_OR_RETURN(std::shared_ptr<StepRunner> runner,
                       LoadStepRunner(*draft, small));
  return runner;
}

absl::Status SetUpSpeculation(const std::string& speculate,
                              const ModelDirectory& model,
                              const RunnerInfo& info,
                              SchedulerOptions* options) {
  if (speculate == "off" || !info.verifies_guesses) {
    options->speculate_tokens = 0;
    options->draft = nullptr;
    if (speculate != "off") {
      Log(LogSeverity::kInfo, "speculation",
          {{"off",
            "the bits of this device's step depend on how tokens are "
            "cut into steps"}});
    }
    return absl::OkStatus();
  }
  const std::string path = absl::StrCat(model.path, "/", kNgramsName);
  absl::StatusOr<NgramTable> table =
      NgramTable::Read(path, FingerprintOf(model), model.config.vocab_size);
  if (table.ok()) {
    options->ngrams = std::make_shared<const NgramTable>(*std::move(table));
  } else if (!absl::IsNotFound(table.status())) {
    return table.status();
  }
  Log(LogSeverity::kInfo, "speculation",
      {{"tokens", options->speculate_tokens},
       {"ngram_bytes",
        options->ngrams == nullptr ? 0 : options->ngrams->bytes()},
       {"draft", options->draft != nullptr}});
  return absl::OkStatus();
}

}  // namespace txl
