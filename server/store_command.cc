#include <cstdio>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/commands.h"
#include "server/signals.h"
#include "server/store/store_tools.h"

namespace txl {
namespace {

constexpr int kSound = 0;
constexpr int kDamaged = 1;

constexpr char kHelp[] =
    "usage: txl-server store check|repair|compact DIR\n"
    "\n"
    "Checks and repairs the sessions that a server with --data-dir DIR keeps.\n"
    "No server may have them open. No model is needed.\n"
    "\n"
    "  check    reads everything and reports damage; changes nothing\n"
    "  repair   moves what is left of damaged sessions to DIR/quarantine,\n"
    "           removes unused data, copies the rest to a new file\n"
    "  compact  copies the database to a new file without free space\n"
    "\n"
    "repair and compact need as much free space as DIR/journal.db takes.\n"
    "Exit status: 0 sound or done, 1 damaged or failed, 2 usage.\n";

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "txl-server store: %s\n",
               std::string(status.message()).c_str());
  return kDamaged;
}

void Print(const char* name, int64_t value) {
  std::printf("%s %lld\n", name, static_cast<long long>(value));
}

void PrintReport(const CheckedStore& report) {
  Print("sessions", report.sessions);
  Print("tokens", report.tokens);
  Print("running_turns", report.running_turns);
  for (const auto& [fingerprint, count] : report.sessions_of) {
    Print(absl::StrCat("sessions_of_model ", absl::CHexEscape(fingerprint))
              .c_str(),
          count);
  }
  Print("damaged_sessions", static_cast<int64_t>(report.damaged.size()));
  for (const CheckedStore::Damaged& damaged : report.damaged) {
    std::printf("damaged %s: %s\n",
                absl::CHexEscape(damaged.session_id).c_str(),
                damaged.what.c_str());
  }
  Print("damaged_log_rows", report.damaged_log_rows);
  for (const std::string& error : report.database_errors) {
    std::printf("database %s\n", absl::CHexEscape(error).c_str());
  }
  Print("contents", report.contents);
  Print("orphaned_contents", report.orphaned_contents);
  Print("images", report.images);
  Print("images_without_session", report.images_without_session);
  Print("database_bytes", report.bytes);
  if (report.failed) std::printf("failed: the storage failed; repair it\n");
}

// What was printed is only worth its exit code where it arrived.
int Exit(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  return Fail(absl::UnavailableError("standard output cannot be written"));
}

int Check(const std::string& folder, const StoreProgress& progress) {
  const absl::StatusOr<CheckedStore> report = CheckStore(folder, progress);
  if (!report.ok()) return Fail(report.status());
  PrintReport(*report);
  std::printf("%s\n", report->sound() ? "sound" : "damaged");
  return Exit(report->sound() ? kSound : kDamaged);
}

int Repair(const std::string& folder, const StoreProgress& progress) {
  const absl::StatusOr<CheckedStore> found = RepairStore(folder, progress);
  if (!found.ok()) return Fail(found.status());
  PrintReport(*found);
  const absl::StatusOr<CheckedStore> now = CheckStore(folder, progress);
  if (!now.ok()) return Fail(now.status());
  Print("sessions_now", now->sessions);
  std::printf("%s\n", now->sound() ? "sound" : "damaged");
  return Exit(now->sound() ? kSound : kDamaged);
}

int Compact(const std::string& folder, const StoreProgress& progress) {
  const absl::StatusOr<CompactedStore> done = CompactStore(folder, progress);
  if (!done.ok()) return Fail(done.status());
  Print("bytes_before", done->bytes_before);
  Print("bytes_after", done->bytes_after);
  return Exit(kSound);
}

}  // namespace

bool IsStoreCommand(const std::vector<std::string>& arguments) {
  return !arguments.empty() && arguments[0] == "store";
}

int RunStoreCommand(const std::vector<std::string>& arguments) {
  const bool help = arguments.size() == 2 &&
                    (arguments[1] == "--help" || arguments[1] == "-h");
  if (help) {
    std::fputs(kHelp, stdout);
    return Exit(kSound);
  }
  const StoreProgress progress = [](absl::string_view line) {
    std::fprintf(stderr, "%s\n", std::string(line).c_str());
  };
  if (arguments.size() == 3) {
    const std::string& what = arguments[1];
    if (what == "check") return Check(arguments[2], progress);
    if (what == "repair") return Repair(arguments[2], progress);
    if (what == "compact") return Compact(arguments[2], progress);
  }
  std::fputs(kHelp, stderr);
  return kExitUsage;
}

}  // namespace txl
