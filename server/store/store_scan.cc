#include "server/store/store_scan.h"

#include <fcntl.h>

#include <cerrno>
#include <cstddef>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "model/base/status_macros.h"
#include "server/base/byte_fields.h"
#include "server/base/digest.h"
#include "server/store/content_tables.h"
#include "server/store/file_calls.h"
#include "server/store/record_codec.h"
#include "server/store/turn_log.h"

namespace txl {
namespace {

constexpr int64_t kProgressSessions = 10'000;

}  // namespace

absl::Status StoreScan::Read() {
  TXL_ASSIGN_OR_RETURN(const int64_t format,
                       database_->Number("PRAGMA user_version"));
  if (format == 0) return absl::UnknownError("there are no sessions' tables");
  if (format > kStoreFormat) {
    return absl::FailedPreconditionError(
        absl::StrCat("the store has format ", format, ", of a newer version"));
  }
  TXL_RETURN_IF_ERROR(ReadDatabase());
  TXL_RETURN_IF_ERROR(ReadModels());
  TXL_RETURN_IF_ERROR(ReadSessions());
  return ReadContents();
}

absl::Status StoreScan::ReadDatabase() {
  progress_("checking the database's pages");
  TXL_ASSIGN_OR_RETURN(Statement check,
                       database_->Prepare("PRAGMA integrity_check(20)"));
  while (true) {
    TXL_ASSIGN_OR_RETURN(const bool more, check.Step());
    if (!more) break;
    const std::string line = check.Blob(0);
    if (line != "ok") report_->database_errors.push_back(line);
  }
  TXL_ASSIGN_OR_RETURN(const std::unique_ptr<TurnLog> log,
                       TurnLog::Open(database_));
  report_->damaged_log_rows = log->damaged_rows();
  return absl::OkStatus();
}

absl::Status StoreScan::ReadModels() {
  TXL_ASSIGN_OR_RETURN(Statement models,
                       database_->Prepare("SELECT key, value FROM meta WHERE "
                                          "key LIKE 'model %'"));
  while (true) {
    TXL_ASSIGN_OR_RETURN(const bool more, models.Step());
    if (!more) return absl::OkStatus();
    const std::string key = models.Blob(0);
    vocab_sizes_[std::string(absl::StripPrefix(key, "model "))] = models.Int(1);
  }
}

absl::Status StoreScan::ReadSessions() {
  TXL_ASSIGN_OR_RETURN(
      Statement all,
      database_->Prepare("SELECT tenant, id FROM session ORDER BY id, tenant"));
  while (true) {
    TXL_ASSIGN_OR_RETURN(const bool more, all.Step());
    if (!more) return absl::OkStatus();
    const SessionName session(all.Blob(0), all.Blob(1));
    digests_.insert(absl::BytesToHexString(Sha256Of(session.text())));
    StoredSession stored;
    const absl::Status status = ReadSession(session, &stored);
    if (!status.ok() && !absl::IsDataLoss(status)) return status;
    if (status.ok()) {
      report_->tokens += stored.token_ids.size();
      report_->running_turns += stored.running.has_value() ? 1 : 0;
    } else {
      damaged_.push_back(session);
      report_->damaged.push_back(
          {session.text(), std::string(status.message())});
    }
    if (++report_->sessions % kProgressSessions == 0) {
      progress_(absl::StrCat(report_->sessions, " sessions read"));
    }
  }
}

absl::StatusOr<std::string> StoreScan::FingerprintOf(
    const SessionName& session) {
  TXL_ASSIGN_OR_RETURN(
      Statement find,
      database_->Prepare("SELECT head FROM session WHERE tenant=? AND id=?"));
  TXL_ASSIGN_OR_RETURN(const bool found,
                       find.Bind(session.tenant()).Bind(session.id()).Step());
  if (!found) return absl::DataLossError("it is not where it should be");
  absl::StatusOr<KeptHead> head = DecodeHead(find.Blob(0));
  if (!head.ok()) return absl::DataLossError("its head cannot be read");
  return std::move(head->fingerprint);
}

absl::Status StoreScan::ReadSession(const SessionName& session,
                                    StoredSession* stored) {
  TXL_ASSIGN_OR_RETURN(const std::string fingerprint, FingerprintOf(session));
  TXL_ASSIGN_OR_RETURN(SessionTables* const tables, TablesOf(fingerprint));
  absl::StatusOr<StoredSession> loaded = tables->Load(session.text());
  // A head with another model's name is no other model's session.
  if (absl::IsFailedPrecondition(loaded.status())) {
    return absl::DataLossError("its model is in doubt");
  }
  if (!loaded.ok()) return loaded.status();
  ++report_->sessions_of[fingerprint];
  *stored = *std::move(loaded);
  return absl::OkStatus();
}

absl::StatusOr<SessionTables*> StoreScan::TablesOf(
    const std::string& fingerprint) {
  std::unique_ptr<SessionTables>& tables = tables_[fingerprint];
  if (tables == nullptr) {
    const auto size = vocab_sizes_.find(fingerprint);
    if (size == vocab_sizes_.end()) {
      return absl::DataLossError("it is of a model that the store never had");
    }
    SessionTablesOptions options;
    options.fingerprint = fingerprint;
    options.vocab_size = size->second;
    options.log = LogAtOpen::kLeave;
    TXL_ASSIGN_OR_RETURN(tables, SessionTables::Open(database_, options));
  }
  return tables.get();
}

absl::Status StoreScan::ReadContents() {
  contents_.clear();
  references_.clear();
  TXL_ASSIGN_OR_RETURN(
      Statement all,
      database_->Prepare("SELECT id, parent, base FROM content"));
  while (true) {
    TXL_ASSIGN_OR_RETURN(const bool more, all.Step());
    if (!more) break;
    contents_[all.Int(0)] = {all.Int(1), all.Int(2)};
  }
  TXL_ASSIGN_OR_RETURN(Statement used,
                       database_->Prepare("SELECT content FROM session"));
  while (true) {
    TXL_ASSIGN_OR_RETURN(const bool more, used.Step());
    if (!more) break;
    int64_t content = used.Int(0);
    // Up to one that others had led to.
    for (auto row = contents_.find(content); row != contents_.end();
         row = contents_.find(row->second.first)) {
      if (++references_[row->first] > 1) break;
    }
  }
  report_->contents = static_cast<int64_t>(contents_.size());
  report_->orphaned_contents =
      static_cast<int64_t>(contents_.size() - references_.size());
  return absl::OkStatus();
}

absl::Status StoreScan::Repair() {
  tables_.clear();
  SessionTablesOptions options;
  options.log = LogAtOpen::kRepair;
  TXL_RETURN_IF_ERROR(SessionTables::Open(database_, options).status());
  const CheckedStore found = *report_;
  for (const SessionName& session : damaged_) {
    StoredSession stored;
    // It may have been its turn alone.
    const absl::Status status = ReadSession(session, &stored);
    if (status.ok()) continue;
    if (!absl::IsDataLoss(status)) return status;
    TXL_RETURN_IF_ERROR(Quarantine(session));
    TXL_RETURN_IF_ERROR(InTransaction([&] { return RemoveSession(session); }));
  }
  TXL_RETURN_IF_ERROR(ReadContents());
  progress_(absl::StrCat("removing ", report_->orphaned_contents,
                         " contents without a session"));
  *report_ = found;
  return InTransaction([this] { return WriteContents(); });
}

absl::Status StoreScan::Quarantine(const SessionName& session) {
  TXL_ASSIGN_OR_RETURN(
      Statement row,
      database_->Prepare("SELECT content, position, log_row, head, record FROM "
                         "session WHERE tenant=? AND id=?"));
  TXL_ASSIGN_OR_RETURN(const bool found,
                       row.Bind(session.tenant()).Bind(session.id()).Step());
  if (!found) return absl::OkStatus();
  ByteWriter left;
  left.Text(session.tenant());
  left.Text(session.id());
  for (const int column : {0, 1, 2}) left.I64(row.Int(column));
  for (const int column : {3, 4}) left.Text(row.Blob(column));
  TXL_ASSIGN_OR_RETURN(
      Statement chunks,
      database_->Prepare("SELECT start, ids FROM chunk WHERE content=?"));
  chunks.Bind(row.Int(0));
  while (true) {
    TXL_ASSIGN_OR_RETURN(const bool more, chunks.Step());
    if (!more) break;
    left.I64(chunks.Int(0));
    left.Text(chunks.Blob(1));
  }
  folder_->Quarantine(session.text(), left.bytes());
  return absl::OkStatus();
}

absl::Status StoreScan::RemoveSession(const SessionName& session) {
  TXL_ASSIGN_OR_RETURN(
      Statement erase,
      database_->Prepare("DELETE FROM session WHERE tenant=? AND id=?"));
  return erase.Bind(session.tenant()).Bind(session.id()).Run();
}

absl::Status StoreScan::WriteContents() {
  TXL_ASSIGN_OR_RETURN(Statement erase,
                       database_->Prepare("DELETE FROM content WHERE id=?"));
  TXL_ASSIGN_OR_RETURN(
      Statement count,
      database_->Prepare("UPDATE content SET refs=?, crc=? WHERE id=?"));
  for (const auto& [content, row] : contents_) {
    const auto used = references_.find(content);
    if (used == references_.end()) {
      TXL_RETURN_IF_ERROR(erase.Bind(content).Run());
      continue;
    }
    const auto& [parent, base] = row;
    TXL_RETURN_IF_ERROR(
        count.Bind(used->second)
            .Bind(ContentCrc(content, parent, base, used->second))
            .Bind(content)
            .Run());
  }
  TXL_RETURN_IF_ERROR(database_->Run(
      "DELETE FROM chunk WHERE content NOT IN (SELECT id FROM content)"));
  return database_->Run(
      "UPDATE meta SET value=(SELECT count(*) FROM session) WHERE "
      "key='sessions'");
}

absl::Status StoreScan::InTransaction(
    const std::function<absl::Status()>& change) {
  TXL_RETURN_IF_ERROR(database_->Run("BEGIN"));
  absl::Status status = change();
  if (status.ok()) status = database_->Run("COMMIT");
  if (!status.ok() && database_->InTransaction()) {
    (void)database_->Run("ROLLBACK");
  }
  return status;
}

namespace {

// https://sqlite.org/fileformat2.html#the_write_ahead_log
constexpr size_t kHeaderBytes = 32;
constexpr size_t kFrameHeaderBytes = 24;
constexpr size_t kFrameBytes =
    kFrameHeaderBytes + static_cast<size_t>(kWalPageBytes);
constexpr uint32_t kWalMagic = 0x377f0682;  // its lowest bit: see Checksum

uint32_t Word(absl::string_view bytes, size_t at, bool big_endian = true) {
  uint32_t word = 0;
  for (size_t i = 0; i < 4; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[at + i]);
    word |= uint32_t{byte} << (8 * (big_endian ? 3 - i : i));
  }
  return word;
}

// Of everything in the log so far.
class Checksum {
 public:
  explicit Checksum(bool big_endian) : big_endian_(big_endian) {}

  void Add(absl::string_view bytes) {
    for (size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      first_ += Word(bytes, at, big_endian_) + second_;
      second_ += Word(bytes, at + 4, big_endian_) + first_;
    }
  }
  bool Is(absl::string_view bytes, size_t at) const {
    return first_ == Word(bytes, at) && second_ == Word(bytes, at + 4);
  }

 private:
  const bool big_endian_;
  uint32_t first_ = 0;
  uint32_t second_ = 0;
};

class WalReader {
 public:
  explicit WalReader(absl::string_view header)
      : checksum_((Word(header, 0) & 1) != 0), salts_(header.substr(16, 8)) {
    checksum_.Add(header.substr(0, 24));
    sound_ = (Word(header, 0) & ~uint32_t{1}) == kWalMagic &&
             Word(header, 8) == kWalPageBytes && checksum_.Is(header, 24);
    if (!sound_) {
      state_.bad_at = 0;
      salts_.clear();
    }
  }

  void Read(absl::string_view frame, int64_t at) {
    const absl::string_view salts = frame.substr(8, 8);
    if (salts_.empty()) salts_ = std::string(salts);
    bool counts = salts == salts_;
    if (sound_) {
      checksum_.Add(frame.substr(0, 8));
      checksum_.Add(frame.substr(kFrameHeaderBytes));
      sound_ = salts == salts_ && checksum_.Is(frame, 16);
      if (!sound_) {
        state_.bad_at = at;
        counts = true;  // the salts may be what is bad
      }
    }
    const bool commits = Word(frame, 4) != 0;
    if (!sound_ && counts && commits) ++state_.lost_commits;
  }

  const WalState& state() const { return state_; }

 private:
  Checksum checksum_;
  std::string salts_;  // of this round of the log
  bool sound_ = false;
  WalState state_;
};

}  // namespace

absl::StatusOr<WalState> ReadWal(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) {
    if (errno == ENOENT) return WalState();
    return FileError(path, "open", errno);
  }
  std::string header(kHeaderBytes, '\0');
  absl::Status read = ReadFully(file.fd(), path, header.data(), header.size());
  if (absl::IsOutOfRange(read)) return WalState();
  TXL_RETURN_IF_ERROR(read);
  WalReader reader(header);
  std::string frame(kFrameBytes, '\0');
  for (int64_t at = kHeaderBytes;; at += kFrameBytes) {
    read = ReadFully(file.fd(), path, frame.data(), frame.size());
    if (absl::IsOutOfRange(read)) return reader.state();
    TXL_RETURN_IF_ERROR(read);
    reader.Read(frame, at);
  }
}

absl::Status CheckWal(const std::string& path, const WalState& state) {
  if (!state.damaged()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      path, ": damaged behind byte ", state.bad_at, "; ", state.lost_commits,
      " changes of sessions would be lost; start once with --store-recover to "
      "go on without them"));
}

}  // namespace txl
