#pragma once

// Lives of several sessions by seed, entered into a journal and into the
// reference model, and what there is of them as one text.

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/store/record_codec.h"
#include "tests/fakes/fake_journal.h"
#include "tests/server/store/store_fixture.h"

namespace txl {

class RandomEntries {
 public:
  explicit RandomEntries(uint64_t seed) : random_(seed) {}

  // One entry, the same into both.
  void Enter(SessionJournal& real, FakeJournal& model) {
    const FakeJournal::Sessions sessions = model.sessions();
    now_ += absl::Seconds(1);
    if (sessions.empty() || Below(8) == 0) return Create(real, model);
    auto found = sessions.begin();
    std::advance(found, Below(static_cast<int64_t>(sessions.size())));
    const auto& [id, session] = *found;
    if (session.running.has_value()) return Run(id, session, real, model);
    const auto position = static_cast<int64_t>(session.ids.size());
    switch (Below(8)) {
      case 0: {
        const StoredHead child = NewHead();
        const int64_t at = Below(position + 1);
        real.Fork(id, at, child);
        model.Fork(id, at, child);
        return;
      }
      case 1: {
        StoredHead head = session.head;
        head.last_use = now_;
        head.last_turn.outcome = "REWOUND";
        const int64_t at = Below(position + 1);
        real.Rewind(id, at, head);
        model.Rewind(id, at, head);
        return;
      }
      case 2:
        return Remove(id, real, model);
      default: {
        TurnIntent intent;
        intent.identity = {absl::StrCat("r", Below(1000)), "digest"};
        intent.seed = random_();
        intent.start_position = position;
        real.Begin(id, intent, now_);
        model.Begin(id, intent, now_);
      }
    }
  }

 private:
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }
  std::vector<int32_t> SomeIds() {
    // Now and then more than a chunk.
    return Ids(Below(12) == 0 ? Below(9000) : Below(20),
               static_cast<int32_t>(Below(1000)));
  }
  StoredHead NewHead() {
    StoredHead head = Head(absl::StrCat("s", next_++));
    head.create_time = head.last_use = now_;
    head.earlier_requests = {random_()};
    head.detokenizer = std::string(static_cast<size_t>(Below(5)), '\0');
    return head;
  }
  void Create(SessionJournal& real, FakeJournal& model) {
    const StoredHead head = NewHead();
    const std::vector<int32_t> ids = SomeIds();
    real.Create(head, Sequence(ids));
    model.Create(head, Sequence(ids));
  }
  static void Remove(const std::string& id, SessionJournal& real,
                     FakeJournal& model) {
    real.Remove(id);
    model.Remove(id);
  }
  JournalTokens Tokens(const FakeJournal::Session& session) {
    JournalTokens tokens;
    tokens.from =
        static_cast<int64_t>(session.ids.size() + session.running_ids.size());
    tokens.ids = SomeIds();
    if (!tokens.ids.empty() && Below(2) == 0) {
      TokenEvent event;
      event.token_id = tokens.ids.back();
      event.text = "text";
      event.logprob = -static_cast<float>(Below(100)) / 7;
      event.top_logprobs = {{1, -0.25f}};
      tokens.events.push_back(event);
    }
    return tokens;
  }
  void Run(const std::string& id, const FakeJournal::Session& session,
           SessionJournal& real, FakeJournal& model) {
    if (Below(30) == 0) return Remove(id, real, model);
    const JournalTokens tokens = Tokens(session);
    if (Below(4) > 0) {
      real.Append(id, tokens);
      model.Append(id, tokens);
      return;
    }
    JournalEnd end = EndWith(tokens);
    end.last_use = now_;
    end.last_turn.request_id = session.running->identity.request_id;
    end.earlier_requests = {random_(), random_()};
    if (Below(2) == 0) {
      auto record = std::make_shared<TurnRecord>();
      record->identity = session.running->identity;
      record->seed = session.running->seed;
      record->tokens = session.running_events;
      end.record = record;
    }
    real.End(id, end);
    model.End(id, end);
  }

  std::mt19937_64 random_;
  int next_ = 0;
  absl::Time now_ = At(5000);
};

// Everything that a journal has, byte by byte.
inline std::string StateOf(SessionJournal& journal) {
  std::string state;
  for (const auto& [id, position] : Positions(journal)) {
    absl::StrAppend(&state, id, "@", position, " ");
  }
  for (const StoredInfo& info : List(journal, "", 1 << 20)) {
    const std::string& id = info.head.session_id;
    const absl::StatusOr<StoredSession> stored = Load(journal, id);
    absl::StrAppend(&state, "[", id, "@", info.position, " ");
    if (!stored.ok()) {
      absl::StrAppend(&state, stored.status().ToString(), "]");
      continue;
    }
    ByteWriter out;
    out.Text(EncodeHead({"", stored->head}));
    out.Text(EncodeIds(Plain(stored->token_ids), INT32_MAX));
    if (stored->record != nullptr) out.Text(EncodeRecord(*stored->record));
    if (stored->running.has_value()) WriteIntent(*stored->running, out);
    WriteTokens({stored->running_tokens, {}, stored->running_events}, out);
    absl::StrAppend(&state, out.bytes(), "]");
  }
  return state;
}

// What a process finds that starts after this one was killed.
inline std::string StateAfterCrash(const FakeJournal& model) {
  return StateOf(*model.Crash());
}

}  // namespace txl
