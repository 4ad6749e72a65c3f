#include "server/speculation.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/text/ngram_table.h"
#include "server/base/log.h"

namespace txl {

absl::Status SetUpSpeculation(const std::string& speculate,
                              const ModelDirectory& model,
                              const RunnerInfo& info,
                              SchedulerOptions* options) {
  if (speculate == "off" || !info.verifies_guesses) {
    options->speculate_tokens = 0;
    if (speculate != "off") {
      Log(LogSeverity::kInfo, "speculation",
          {{"off",
            "the bits of this device's step depend on how tokens are "
            "cut into steps"}});
    }
    return absl::OkStatus();
  }
  const std::string path = absl::StrCat(model.path, "/", kNgramsName);
  const uint32_t fingerprint = model.vocabulary == nullptr
                                   ? 0
                                   : VocabularyFingerprint(*model.vocabulary);
  absl::StatusOr<NgramTable> table =
      NgramTable::Read(path, fingerprint, model.config.vocab_size);
  if (table.ok()) {
    options->ngrams = std::make_shared<const NgramTable>(*std::move(table));
  } else if (!absl::IsNotFound(table.status())) {
    return table.status();
  }
  Log(LogSeverity::kInfo, "speculation",
      {{"tokens", options->speculate_tokens},
       {"ngram_bytes",
        options->ngrams == nullptr ? 0 : options->ngrams->bytes()}});
  return absl::OkStatus();
}

}  // namespace txl
