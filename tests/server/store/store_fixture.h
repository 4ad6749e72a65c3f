#pragma once

// What the tests of the store of sessions share: sessions by the dozen, and a
// journal whose asynchronous calls are waited for.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/store/database.h"
#include "server/store/sqlite_journal.h"

namespace txl {

inline absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(seconds); }

// Ids of a vocabulary of 1,000, none like its neighbours.
inline std::vector<int32_t> Ids(int64_t count, int32_t first = 0) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    ids[static_cast<size_t>(i)] = static_cast<int32_t>((first + i * 7) % 1000);
  }
  return ids;
}

inline TokenSequence Sequence(const std::vector<int32_t>& ids) {
  TokenSequence sequence;
  sequence.Append(ids);
  return sequence;
}

inline std::vector<int32_t> Plain(const TokenSequence& ids) {
  return ids.Last(ids.size());
}

inline StoredHead Head(const std::string& id) {
  StoredHead head;
  head.session_id = id;
  head.ttl = absl::Hours(1);
  head.create_time = At(1000);
  head.last_use = At(1000);
  return head;
}

inline JournalEnd EndWith(JournalTokens tokens) {
  JournalEnd end;
  end.tokens = std::move(tokens);
  end.last_turn.outcome = "MAX_TOKENS";
  end.last_use = At(2000);
  return end;
}

// A folder that is gone with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = ::testing::TempDir() + "/storeXXXXXX";
    path_ = mkdtemp(path.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Copies of a store as a crash of its process leaves it.
inline void CopyStore(const std::string& from, const std::string& to) {
  std::filesystem::remove_all(to);
  std::filesystem::create_directory(to);
  for (const auto& file : std::filesystem::directory_iterator(from)) {
    const std::string name = file.path().filename().string();
    if (name.rfind("journal.db", 0) == 0 || name == "FAILED") {
      std::filesystem::copy(file.path(), to + "/" + name);
    }
  }
}

inline SqliteJournalOptions StoreOptions(const std::string& folder) {
  SqliteJournalOptions options;
  options.folder = folder;
  options.interval = absl::Milliseconds(1);
  options.fingerprint = "model";
  options.vocab_size = 1000;
  return options;
}

inline absl::Status DurableUpTo(SessionJournal& journal, uint64_t entry) {
  std::promise<absl::Status> told;
  journal.WhenDurable(
      entry, [&](const absl::Status& status) { told.set_value(status); });
  return told.get_future().get();
}

inline absl::Status Durable(SessionJournal& journal) {
  return DurableUpTo(journal, journal.last_entry());
}

inline absl::StatusOr<StoredSession> Load(SessionJournal& journal,
                                          const std::string& id) {
  std::promise<absl::StatusOr<StoredSession>> told;
  journal.Load(id, [&](absl::StatusOr<StoredSession> loaded) {
    told.set_value(std::move(loaded));
  });
  return told.get_future().get();
}

inline std::vector<StoredInfo> List(SessionJournal& journal,
                                    const std::string& after, int64_t count) {
  std::promise<absl::StatusOr<std::vector<StoredInfo>>> told;
  journal.List(after, count, [&](absl::StatusOr<std::vector<StoredInfo>> page) {
    told.set_value(std::move(page));
  });
  absl::StatusOr<std::vector<StoredInfo>> page = told.get_future().get();
  EXPECT_TRUE(page.ok()) << page.status();
  return page.ok() ? *std::move(page) : std::vector<StoredInfo>();
}

inline std::vector<std::string> Expired(SessionJournal& journal, absl::Time now,
                                        int64_t count = 10) {
  std::promise<absl::StatusOr<std::vector<StoredPosition>>> told;
  journal.ListExpired(now, count,
                      [&](absl::StatusOr<std::vector<StoredPosition>> expired) {
                        told.set_value(std::move(expired));
                      });
  const auto expired = told.get_future().get();
  EXPECT_TRUE(expired.ok()) << expired.status();
  std::vector<std::string> ids;
  if (!expired.ok()) return ids;
  for (const StoredPosition& session : *expired) {
    ids.push_back(session.session_id);
  }
  return ids;
}

// By id; of one session, or of all.
inline std::map<std::string, int64_t> Positions(SessionJournal& journal,
                                                const std::string& id = "") {
  std::map<std::string, int64_t> positions;
  std::promise<absl::Status> told;
  journal.Positions(
      id,
      [&](const StoredPosition& session) {
        EXPECT_TRUE(
            positions.emplace(session.session_id, session.position).second)
            << session.session_id << " is told twice";
      },
      [&](const absl::Status& status) { told.set_value(status); });
  const absl::Status status = told.get_future().get();
  EXPECT_TRUE(status.ok()) << status;
  return positions;
}

// A journal in a folder of its own.
class JournalTest : public ::testing::Test {
 protected:
  JournalTest() : options_(StoreOptions(temporary_.path() + "/store")) {
    Reopen();
  }
  ~JournalTest() override { journal_.reset(); }

  void Reopen() {
    journal_.reset();
    auto opened = OpenSqliteJournal(options_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    journal_ = *std::move(opened);
  }
  // The files as they are now; what the closing journal does is lost.
  void Crash() {
    const std::string copy = options_.folder + "-copy";
    CopyStore(options_.folder, copy);
    journal_.reset();
    std::filesystem::remove_all(options_.folder);
    std::filesystem::rename(copy, options_.folder);
    Reopen();
  }
  // The ids of a session that can be loaded.
  std::vector<int32_t> IdsOf(const std::string& id) {
    const absl::StatusOr<StoredSession> loaded = Load(*journal_, id);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? Plain(loaded->token_ids) : std::vector<int32_t>();
  }
  // Changes the database while nobody has it open.
  void Tamper(const std::string& sql) {
    journal_.reset();
    auto database = Database::Open({options_.folder + "/journal.db", "", 0});
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE((*database)->Run(sql.c_str()).ok()) << sql;
  }

  TemporaryFolder temporary_;
  SqliteJournalOptions options_;
  std::unique_ptr<SessionJournal> journal_;
};

}  // namespace txl
