// StoreScan: what a database that cannot be copied still gives.

#include <memory>
#include <utility>

#include "model/base/status_macros.h"
#include "server/store/store_scan.h"

namespace txl {

absl::Status StoreScan::Salvage(Database* into) {
  TXL_RETURN_IF_ERROR(into->Run("PRAGMA synchronous=OFF"));
  TXL_RETURN_IF_ERROR(ReadModels());
  // Each way ends at the first page that cannot be read.
  std::set<std::pair<std::string, std::string>> keys;
  FindKeys("SELECT tenant, id FROM session ORDER BY tenant, id", keys);
  FindKeys("SELECT tenant, id FROM session ORDER BY tenant DESC, id DESC",
           keys);
  FindKeys("SELECT tenant, id FROM session NOT INDEXED ORDER BY rowid", keys);
  FindKeys("SELECT tenant, id FROM session NOT INDEXED ORDER BY rowid DESC",
           keys);
  report_->sessions = static_cast<int64_t>(keys.size());
  std::map<std::pair<std::string, std::string>, std::vector<Key>> of_model;
  for (const auto& [tenant, id] : keys) {
    const Key key{tenant, id};
    const absl::StatusOr<std::string> fingerprint = FingerprintOf(key);
    if (fingerprint.ok() && vocab_sizes_.count(*fingerprint) > 0) {
      of_model[{tenant, *fingerprint}].push_back(key);
    } else {
      report_->damaged.push_back({id, "its model is not known"});
    }
  }
  for (const auto& [model, its_keys] : of_model) {
    SessionTablesOptions options;
    options.tenant = model.first;
    options.fingerprint = model.second;
    options.vocab_size = vocab_sizes_.at(model.second);
    TXL_ASSIGN_OR_RETURN(const std::unique_ptr<SessionTables> tables,
                         SessionTables::Open(into, options));
    for (const Key& key : its_keys) {
      TXL_RETURN_IF_ERROR(SalvageSession(key, tables.get()));
    }
  }
  return absl::OkStatus();
}

void StoreScan::FindKeys(const char* order,
                         std::set<std::pair<std::string, std::string>>& keys) {
  absl::StatusOr<Statement> all = database_->Prepare(order);
  if (!all.ok()) return;
  for (absl::StatusOr<bool> more = all->Step(); more.ok() && *more;
       more = all->Step()) {
    keys.emplace(all->Blob(0), all->Blob(1));
  }
}

absl::Status StoreScan::SalvageSession(const Key& key, SessionTables* into) {
  StoredSession stored;
  const absl::Status read = ReadSession(key, &stored);
  if (absl::IsDataLoss(read) || absl::IsUnknown(read)) {
    report_->damaged.push_back({key.id, std::string(read.message())});
    (void)Quarantine(key);
    return absl::OkStatus();
  }
  TXL_RETURN_IF_ERROR(read);
  const int64_t before = stored.token_ids.size() - stored.running_tokens;
  std::vector<JournalEntry> entries;
  entries.push_back(
      CreateEntry{stored.head, stored.token_ids.Slice(0, before)});
  if (stored.running.has_value()) {
    entries.push_back(
        BeginEntry{key.id, *stored.running, stored.head.last_use});
    entries.push_back(
        AppendEntry{key.id,
                    {before, stored.token_ids.Last(stored.running_tokens),
                     stored.running_events}});
  }
  report_->tokens += stored.token_ids.size();
  return into->Commit(entries);
}

}  // namespace txl
