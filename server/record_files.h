#pragma once

// The files in which calls can be followed: the audit log, and spans.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/api/service_context.h"
#include "server/base/line_file.h"
#include "server/flag_table.h"

namespace txl {

struct RecordFlags {
  std::string audit_log;   // file; empty: none
  std::string trace_file;  // file; empty: none
  // Fraction of calls traced when the client made no sampling decision.
  double trace_rate = 1;
};

void AddRecordFlags(RecordFlags* flags, FlagTable* table);

// Thread-safe.
class RecordFiles {
 public:
  // Errors name flag and file.
  static absl::StatusOr<std::unique_ptr<RecordFiles>> Open(
      const RecordFlags& flags);

  void SetIn(ServiceContext* context) const;
  LineFile* audit() const { return audit_.get(); }
  // Opens the paths again, in case files were renamed; says which there are.
  std::vector<ReloadedFile> Reopen();

 private:
  RecordFiles() = default;

  double trace_rate_ = 1;
  std::unique_ptr<LineFile> audit_;  // null: none
  std::unique_ptr<LineFile> spans_;  // null: none
};

}  // namespace txl
