#pragma once

// The native tensors of one model while a family plans: each is used or
// expressly ignored, and what is left over is an error.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/convert/container/native_checkpoint.h"

namespace txl {

// After the first error every Take gives a view of nothing with the expected
// sizes (0 for any), and Finish says what was wrong: a family takes all and
// checks once. Errors name the path and the tensor's whole place. Refers to the
// checkpoint.
class TensorTable {
 public:
  // The tensors whose place starts with `prefix` ("model_state."), without it.
  // Other tensors of the checkpoint (optimizer state) are none of the model's.
  // An entry under the prefix that is no tensor is an error when `data` is a
  // dictionary with tensors there: a state dict holds tensors only.
  TensorTable(const NativeCheckpoint& checkpoint, absl::string_view prefix);

  bool Has(absl::string_view name) const;
  // Size of dimension `dim` of a tensor, 0 with an error recorded when it is
  // absent or has fewer dimensions. Does not count as use.
  int64_t Dim(absl::string_view name, int64_t dim);
  int64_t Dims(absl::string_view name);  // number of dimensions; likewise

  // The tensor, used from now on. Expected sizes are checked (-1: any but 0). A
  // view that shows more bytes than its storage has is an error.
  StoredTensor Take(absl::string_view name, std::vector<int64_t> shape);
  // Used and thrown away, when present.
  void Ignore(absl::string_view name);
  void IgnorePrefix(absl::string_view prefix);

  // Names left, sorted; how many numbers "PREFIX0.", "PREFIX1.", ... follow
  // each other without a gap (also "PREFIX0" itself counts).
  std::vector<std::string> Unused() const;
  int64_t Count(absl::string_view prefix) const;

  void Fail(std::string message);
  const absl::Status& status() const { return status_; }
  // status(), or an error naming tensors that were not used.
  absl::Status Finish() const;

 private:
  void CheckEntries(const nlohmann::json* dictionary);
  const StoredTensor* Find(absl::string_view name) const;

  const std::string path_;
  const std::string prefix_;
  std::map<std::string, const StoredTensor*, std::less<>> tensors_;
  std::set<std::string, std::less<>> used_;
  absl::Status status_;
};

}  // namespace txl
