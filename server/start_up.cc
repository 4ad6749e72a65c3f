#include "server/start_up.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "model/base/status_macros.h"
#include "server/base/log.h"
#include "server/scheduler/turn.h"

namespace txl {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> FoldersIn(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;  // a folder that cannot be read has none
  for (fs::directory_iterator entry(folder, error), end; entry != end;
       entry.increment(error)) {
    std::error_code unknown;
    if (entry->is_directory(unknown)) names.push_back(entry->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::string InstalledModels() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return "";
  return program.parent_path().parent_path() / "share/txl/models";
}

absl::StatusOr<std::string> FindModel(const std::string& model,
                                      absl::string_view installed) {
  std::error_code error;
  if (model.find('/') != std::string::npos || fs::exists(model, error)) {
    return model;
  }
  const std::vector<std::string> names = FoldersIn(std::string(installed));
  if (std::find(names.begin(), names.end(), model) != names.end()) {
    return absl::StrCat(installed, "/", model);
  }
  return absl::NotFoundError(absl::StrCat(
      "--model: \"", model,
      "\" is neither a folder here nor one of the models "
      "in ",
      installed,
      names.empty() ? ", where there are none" : ", where there are: ",
      absl::StrJoin(names, ", ")));
}

absl::StatusOr<std::shared_ptr<const NgramTable>> ReadNgrams(
    const ModelDirectory& model) {
  const std::string path = absl::StrCat(model.path, "/", kNgramsName);
  const uint32_t fingerprint = model.vocabulary == nullptr
                                   ? 0
                                   : VocabularyFingerprint(*model.vocabulary);
  absl::StatusOr<NgramTable> table =
      NgramTable::Read(path, fingerprint, model.config.vocab_size);
  if (absl::IsNotFound(table.status())) return nullptr;
  if (!table.ok()) return table.status();
  return std::make_shared<const NgramTable>(*std::move(table));
}

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
  TXL_ASSIGN_OR_RETURN(options->ngrams, ReadNgrams(model));
  Log(LogSeverity::kInfo, "speculation",
      {{"tokens", options->speculate_tokens},
       {"ngram_bytes",
        options->ngrams == nullptr ? 0 : options->ngrams->bytes()}});
  return absl::OkStatus();
}

namespace {

class EndSink final : public TokenSink {
 public:
  void Started(const TurnStarted&) override {}
  void Token(TokenEvent) override {}
  void Scored(std::vector<ScoredToken>) override {}
  void Finished(const TurnFinished&) override { ended_.Notify(); }
  void Failed(const absl::Status& status) override {
    status_ = status;
    ended_.Notify();
  }
  int Unsent() const override { return 0; }

  absl::Status Wait() {
    ended_.WaitForNotification();
    return status_;
  }

 private:
  absl::Status status_;  // written before the notification
  absl::Notification ended_;
};

}  // namespace

absl::Status WarmUp(Scheduler* scheduler, SessionStore* store) {
  TXL_ASSIGN_OR_RETURN(SessionLease lease, store->AcquireTemporary());
  const auto sink = std::make_shared<EndSink>();
  Turn turn;
  turn.lease = std::move(lease);
  turn.input = {0};
  turn.stop.max_tokens = 1;
  turn.sink = sink;
  turn.cancel = std::make_shared<CancelToken>();
  TXL_RETURN_IF_ERROR(scheduler->Submit(std::move(turn)));
  return sink->Wait();
}

namespace {

constexpr int64_t kSmallModelParameters = 20'000'000;

}  // namespace

int ChooseThreads(int wanted, int cores, int64_t parameters) {
  if (wanted > 0) return wanted;
  if (parameters < kSmallModelParameters) return 1;
  return std::max(cores, 1);
}

void SetTorchThreads(int threads) { at::set_num_threads(threads); }

}  // namespace txl
