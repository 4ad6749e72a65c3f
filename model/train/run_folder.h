#pragma once

// The folder of a training run: what its files are called, what lies in it, and
// that one run at a time writes there.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace txl {

inline constexpr char kCheckpointFile[] = "checkpoint.safetensors";
inline constexpr char kTrainingLogFile[] = "log.jsonl";
inline constexpr char kLossChartFile[] = "losses.svg";

// Makes the folder when it is missing. Errors: PermissionDenied naming it.
absl::Status MakeFolder(const std::string& folder);

// Names of the files that describe the model in `folder`, there or not:
// config.json, tokenizer.json and the file that it names, generation.json and
// kinds.json.
std::vector<std::string> DescribingFiles(const std::string& folder);

// Names of all files that a model or a run may have there.
std::vector<std::string> RunFiles(const std::string& folder);

enum class FolderContent {
  kNothing,     // it is empty or not there
  kOther,       // something, but no file of a model or a run
  kModel,       // a model, or a run that ended before its first checkpoint
  kCheckpoint,  // a run that can go on
};
FolderContent ContentOf(const std::string& folder);

// Removes the files of a model and of a training run, so that none of them
// stands beside those of the next. Other files and all folders stay. Errors:
// PermissionDenied naming the file.
absl::Status RemoveRunFiles(const std::string& folder);
// Only those that a run which was killed has left half written.
absl::Status RemoveTemporaryFiles(const std::string& folder);

// A run's hold on its folder. It ends with the object, and with the process
// however that ends.
class RunLock {
 public:
  // Makes the folder when it is missing. Errors: those of MakeFolder;
  // FailedPrecondition naming the folder, while another run holds it. A file
  // system without locks lets every run in.
  static absl::StatusOr<std::unique_ptr<RunLock>> Take(
      const std::string& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  explicit RunLock(int fd) : fd_(fd) {}

  const int fd_;  // of the folder
};

}  // namespace txl
