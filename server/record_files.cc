#include "server/record_files.h"

#include "model/base/status_macros.h"

namespace txl {

void AddRecordFlags(RecordFlags* flags, FlagTable* table) {
  table->Text("audit-log", &flags->audit_log,
              "File to which the server appends a line for every call, also "
              "for refused ones, and for keys and tenants that are read again; "
              "reopened on SIGHUP; empty: none");
  table->Text("trace-file", &flags->trace_file,
              "File to which the server appends the spans of calls, as OTLP in "
              "JSON lines; reopened on SIGHUP; empty: none");
  table->Real("trace-rate", &flags->trace_rate, 0, 1,
              "Fraction of calls traced when the client made no sampling "
              "decision");
}

absl::StatusOr<std::unique_ptr<RecordFiles>> RecordFiles::Open(
    const RecordFlags& flags) {
  std::unique_ptr<RecordFiles> files(new RecordFiles);
  files->trace_rate_ = flags.trace_rate;
  if (!flags.audit_log.empty()) {
    TXL_ASSIGN_OR_RETURN(
        files->audit_,
        LineFile::Open({"audit-log", flags.audit_log, /*notes_losses=*/true}));
  }
  if (!flags.trace_file.empty()) {
    TXL_ASSIGN_OR_RETURN(files->spans_,
                         LineFile::Open({"trace-file", flags.trace_file}));
  }
  return files;
}

void RecordFiles::SetIn(ServiceContext* context) const {
  context->audit = audit_.get();
  context->spans = spans_.get();
  context->trace_rate = trace_rate_;
}

std::vector<ReloadedFile> RecordFiles::Reopen() {
  std::vector<ReloadedFile> files;
  for (LineFile* const file : {audit_.get(), spans_.get()}) {
    if (file == nullptr) continue;
    files.push_back(
        {file->options().setting, file->options().path, file->Reopen()});
  }
  return files;
}

}  // namespace txl
