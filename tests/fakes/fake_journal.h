#pragma once

// A journal in memory whose storage is as fast as a test says, and that can
// lose what was not on it: the reference of what server/store has to do.

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/session/session_errors.h"
#include "server/session/session_journal.h"
#include "server/session/session_name.h"

namespace txl {

class FakeJournal : public SessionJournal {
 public:
  // What is stored of a session.
  struct Session {
    StoredHead head = {};
    std::vector<int32_t> ids = {};
    std::shared_ptr<const TurnRecord> record = {};
    std::string record_detokenizer = {};
    std::optional<TurnIntent> running = {};
    std::vector<int32_t> running_ids = {};
    std::vector<TokenEvent> running_events = {};
  };
  using Sessions = std::map<std::string, Session>;

  // `commits`: every entry is on stable storage at once.
  explicit FakeJournal(bool commits = true) : commits_(commits) {}

  // Everything entered so far is on stable storage; callbacks run.
  void Commit() { CommitTo(last_entry()); }
  void CommitTo(uint64_t entry) {
    {
      absl::MutexLock lock(&mutex_);
      durable_ = std::max(durable_, entry);
    }
    RunCallbacks();
  }
  // What waits, and what comes, is refused with this.
  void Fail(const absl::Status& status) {
    {
      absl::MutexLock lock(&mutex_);
      failure_ = status;
    }
    RunCallbacks();
  }
  // The journal of a process that starts after this one was killed.
  std::unique_ptr<FakeJournal> Crash() const {
    absl::MutexLock lock(&mutex_);
    auto after = std::make_unique<FakeJournal>();
    after->start_ = StateAt(durable_);
    return after;
  }
  // What a process would find that started now and had lost nothing.
  Sessions sessions() const {
    absl::MutexLock lock(&mutex_);
    return StateAt(entries_.size());
  }
  int64_t loads() const {
    absl::MutexLock lock(&mutex_);
    return loads_;
  }

  uint64_t Create(const StoredHead& head, const TokenSequence& ids) override {
    return Enter([head, ids = ids.Slice(0, ids.size()).Copy()](Sessions& s) {
      s[head.session_id] = Session{.head = head, .ids = ids};
    });
  }
  uint64_t Fork(const std::string& parent, int64_t position,
                const StoredHead& child) override {
    return Enter([parent, position, child](Sessions& s) {
      std::vector<int32_t> ids = All(s.at(parent));
      ids.resize(static_cast<size_t>(position));
      s[child.session_id] = Session{.head = child, .ids = std::move(ids)};
    });
  }
  uint64_t Begin(const std::string& id, TurnIntent intent,
                 absl::Time now) override {
    return Enter([id, intent, now](Sessions& s) {
      Session& session = s.at(id);
      session.running = intent;
      session.head.last_use = now;
    });
  }
  uint64_t Append(const std::string& id, JournalTokens tokens) override {
    return Enter([id, tokens](Sessions& s) {
      Session& session = s.at(id);
      session.running_ids.insert(session.running_ids.end(), tokens.ids.begin(),
                                 tokens.ids.end());
      session.running_events.insert(session.running_events.end(),
                                    tokens.events.begin(), tokens.events.end());
    });
  }
  uint64_t End(const std::string& id, JournalEnd end) override {
    // As on a disk: the detokenizer is what its state says.
    const std::string before =
        end.record != nullptr && end.record->detokenizer != nullptr
            ? end.record->detokenizer->State()
            : "";
    return Enter([id, end, before](Sessions& s) {
      Session& session = s.at(id);
      session.ids = All(session);
      session.ids.insert(session.ids.end(), end.tokens.ids.begin(),
                         end.tokens.ids.end());
      session.running.reset();
      session.running_ids.clear();
      session.running_events.clear();
      session.head.last_turn = end.last_turn;
      session.head.detokenizer = end.detokenizer;
      session.head.earlier_requests = end.earlier_requests;
      session.head.last_use = end.last_use;
      session.record = end.record;
      session.record_detokenizer = before;
    });
  }
  uint64_t Rewind(const std::string& id, int64_t position,
                  const StoredHead& head) override {
    return Enter([id, position, head](Sessions& s) {
      std::vector<int32_t> ids = All(s.at(id));
      ids.resize(static_cast<size_t>(position));
      s[id] = Session{.head = head, .ids = std::move(ids)};
    });
  }
  uint64_t Remove(const std::string& id) override {
    return Enter([id](Sessions& s) { s.erase(id); });
  }

  uint64_t last_entry() const override {
    absl::MutexLock lock(&mutex_);
    return entries_.size();
  }
  uint64_t durable_entry() const override {
    absl::MutexLock lock(&mutex_);
    return durable_;
  }
  void WhenDurable(uint64_t entry,
                   std::function<void(const absl::Status&)> done) override {
    {
      absl::MutexLock lock(&mutex_);
      waiting_.emplace_back(entry, std::move(done));
    }
    RunCallbacks();
  }

  void Load(const std::string& id,
            std::function<void(absl::StatusOr<StoredSession>)> done) override {
    absl::StatusOr<StoredSession> stored = SessionUnknownError();
    {
      absl::MutexLock lock(&mutex_);
      ++loads_;
      const Sessions state = StateAt(entries_.size());
      const auto found = state.find(id);
      if (found != state.end()) stored = Stored(found->second);
    }
    done(std::move(stored));
  }
  void List(const std::string& after, int64_t count,
            std::function<void(absl::StatusOr<std::vector<StoredInfo>>)> done)
      override {
    std::vector<StoredInfo> page;
    const SessionName first = SessionName::OfText(after);
    for (const auto& [id, session] : sessions()) {
      const SessionName name = SessionName::OfText(id);
      if (name.tenant() != first.tenant() || name <= first ||
          static_cast<int64_t>(page.size()) == count) {
        continue;
      }
      page.push_back({session.head, static_cast<int64_t>(All(session).size())});
    }
    done(page);
  }
  void ListExpired(
      absl::Time now, int64_t count,
      std::function<void(absl::StatusOr<std::vector<StoredPosition>>)> done)
      override {
    std::vector<StoredPosition> expired;
    for (const auto& [id, session] : sessions()) {
      if (session.head.last_use + session.head.ttl <= now &&
          static_cast<int64_t>(expired.size()) < count) {
        expired.push_back(PositionOf(id, session));
      }
    }
    done(expired);
  }
  void Positions(const std::string& session_id,
                 std::function<void(const StoredPosition&)> each,
                 std::function<void(const absl::Status&)> done) override {
    for (const auto& [id, session] : sessions()) {
      if (session_id.empty() || id == session_id) each(PositionOf(id, session));
    }
    done(absl::OkStatus());
  }
  JournalStatus status() const override {
    return {.entries = last_entry(),
            .durable = durable_entry(),
            .sessions = static_cast<int64_t>(sessions().size())};
  }
  void Drain(absl::Duration) override { Commit(); }

 private:
  static std::vector<int32_t> All(const Session& session) {
    std::vector<int32_t> ids = session.ids;
    ids.insert(ids.end(), session.running_ids.begin(),
               session.running_ids.end());
    return ids;
  }
  static StoredPosition PositionOf(const std::string& id,
                                   const Session& session) {
    return {id, static_cast<int64_t>(All(session).size())};
  }
  static StoredSession Stored(const Session& session) {
    StoredSession stored;
    stored.head = session.head;
    stored.token_ids.Append(All(session));
    if (session.record != nullptr) {
      auto record = std::make_shared<TurnRecord>(*session.record);
      record->detokenizer = nullptr;
      stored.record = std::move(record);
      stored.record_detokenizer = session.record_detokenizer;
    }
    stored.running = session.running;
    stored.running_tokens = static_cast<int64_t>(session.running_ids.size());
    stored.running_events = session.running_events;
    return stored;
  }

  uint64_t Enter(std::function<void(Sessions&)> entry) {
    absl::MutexLock lock(&mutex_);
    entries_.push_back(std::move(entry));
    if (commits_) durable_ = entries_.size();
    return entries_.size();
  }
  Sessions StateAt(size_t entries) const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    Sessions state = start_;
    for (size_t i = 0; i < entries; ++i) entries_[i](state);
    return state;
  }
  void RunCallbacks() {
    std::vector<
        std::pair<std::function<void(const absl::Status&)>, absl::Status>>
        ready;
    {
      absl::MutexLock lock(&mutex_);
      for (auto it = waiting_.begin(); it != waiting_.end();) {
        const bool durable = it->first <= durable_;
        if (durable || !failure_.ok()) {
          ready.emplace_back(std::move(it->second),
                             durable ? absl::OkStatus() : failure_);
          it = waiting_.erase(it);
        } else {
          ++it;
        }
      }
    }
    for (const auto& [done, status] : ready) done(status);
  }

  const bool commits_;
  mutable absl::Mutex mutex_;
  Sessions start_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::function<void(Sessions&)>> entries_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<uint64_t, std::function<void(const absl::Status&)>>>
      waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t durable_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  int64_t loads_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace txl
