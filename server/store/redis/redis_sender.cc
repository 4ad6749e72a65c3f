#include "server/store/redis/redis_sender.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/numbers.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/session/session_errors.h"
#include "server/store/database.h"
#include "server/store/redis/redis_calls.h"

namespace txl {
namespace {

// Joins what a turn took on one after the other: one call does for it.
bool Join(const AppendEntry& more, AppendEntry& into) {
  JournalTokens& tokens = into.tokens;
  const JournalTokens& added = more.tokens;
  const auto end = tokens.from + static_cast<int64_t>(tokens.ids.size());
  if (end != added.from) return false;
  tokens.ids.insert(tokens.ids.end(), added.ids.begin(), added.ids.end());
  tokens.events.insert(tokens.events.end(), added.events.begin(),
                       added.events.end());
  return true;
}

void Merge(std::vector<RedisItem>& items) {
  // By claim, what it entered last.
  std::unordered_map<const SessionClaim*, RedisItem*> last;
  for (RedisItem& item : items) {
    if (!item.entry.has_value()) continue;
    RedisItem*& before = last[item.claim.get()];
    auto* more = std::get_if<AppendEntry>(&*item.entry);
    auto* into =
        before == nullptr ? nullptr : std::get_if<AppendEntry>(&*before->entry);
    if (more != nullptr && into != nullptr && Join(*more, *into)) {
      item.entry.reset();  // nothing is left to say
    } else {
      before = &item;
    }
  }
  std::erase_if(items, [](const RedisItem& item) {
    return !item.entry.has_value() && item.make == nullptr;
  });
}

// Whether the maker of the entry asks TakeRefusal for its result.
bool Answers(const JournalEntry& entry) {
  return std::holds_alternative<CreateEntry>(entry) ||
         std::holds_alternative<ForkEntry>(entry) ||
         std::holds_alternative<RewindEntry>(entry);
}

int64_t PositionOf(const std::vector<std::string>& words) {
  int64_t position = 0;
  return words.size() > 1 && absl::SimpleAtoi(words[1], &position) ? position
                                                                   : 0;
}

}  // namespace

void RedisSender::Add(std::vector<RedisItem> items) {
  Merge(items);
  for (RedisItem& item : items) {
    Waiting waiting;
    waiting.item = std::move(item);
    waiting_.push_back(std::move(waiting));
  }
}

absl::Status RedisSender::Make(Waiting& waiting) {
  RedisItem& item = waiting.item;
  if (!item.entry.has_value()) {
    waiting.command = item.make();
  } else if (!item.claim->moved() ||  // else it has been told
             std::holds_alternative<RemoveEntry>(*item.entry)) {
    // A removal names the session by its birth, so any owner may have it now.
    waiting.position = item.claim->version.position;
    absl::Status made;
    if (std::holds_alternative<ForkEntry>(*item.entry)) {
      made = MakeFork(waiting);
    } else if (std::holds_alternative<RewindEntry>(*item.entry)) {
      made = MakeRewind(waiting);
    } else {
      waiting.command = EntryCall(caller_, *item.entry, *item.claim);
    }
    if (!made.ok()) return made;
    if (item.claim->version.owned) owned_[item.session_id] = item.claim;
  }
  waiting.made = true;
  waiting.answered = waiting.command.empty();
  return absl::OkStatus();
}

absl::Status RedisSender::MakeFork(Waiting& waiting) {
  RedisItem& item = waiting.item;
  const auto& fork = std::get<ForkEntry>(*item.entry);
  const absl::StatusOr<StoredSession> parent = ReadNow(fork.parent);
  if (absl::IsUnavailable(parent.status())) return parent.status();
  // As of any entry of a session that is not there.
  if (!parent.ok() || parent->token_ids.size() < fork.position) {
    return absl::OkStatus();
  }
  const CreateEntry create{fork.child,
                           parent->token_ids.Slice(0, fork.position)};
  waiting.command = EntryCall(caller_, create, *item.claim);
  return absl::OkStatus();
}

absl::Status RedisSender::MakeRewind(Waiting& waiting) {
  const RedisItem& item = waiting.item;
  const auto& rewind = std::get<RewindEntry>(*item.entry);
  const absl::StatusOr<StoredSession> whole = ReadNow(item.session_id);
  if (absl::IsUnavailable(whole.status())) return whole.status();
  std::vector<int32_t> kept;  // of one that is damaged: it stays so
  if (whole.ok()) kept = whole->token_ids.Slice(0, rewind.position).Copy();
  waiting.command = RewindCall(caller_, rewind, kept, *item.claim);
  return absl::OkStatus();
}

absl::StatusOr<StoredSession> RedisSender::ReadNow(
    const std::string& session_id) {
  const RedisAnswer read = link_->CallOne(LoadCall(session_id, nullptr));
  if (!read.ok()) return read.status();
  return ReadSession(caller_, session_id, *read);
}

RedisPass RedisSender::Send() {
  RedisPass pass;
  for (Waiting& waiting : waiting_) {
    if (waiting.made) continue;
    const RedisItem& item = waiting.item;
    // Every caller that waits must get a refusal of its own.
    if (item.entry.has_value() && item.claim->moved() && Answers(*item.entry)) {
      pass.refused.push_back(
          {item.session_id, item.claim, true, MovedError(*item.claim)});
    }
    pass.error = Make(waiting);
    if (!pass.error.ok()) break;
  }
  SendWaiting(pass);
  // Reads do not wait for a storage that does not answer.
  for (Waiting& waiting : waiting_) {
    if (waiting.answered || waiting.item.entry.has_value()) continue;
    waiting.answered = true;
    if (waiting.item.answered) waiting.item.answered(StoreFailedError());
  }
  std::erase_if(waiting_, [](const Waiting& each) { return each.answered; });
  InsertLost();
  pass.done = waiting_.empty();
  return pass;
}

void RedisSender::SendWaiting(RedisPass& pass) {
  std::vector<Waiting*> sent;
  std::vector<RedisCommand> commands;
  for (Waiting& waiting : waiting_) {
    if (!waiting.made || waiting.answered) continue;
    sent.push_back(&waiting);
    commands.push_back(waiting.command);
  }
  if (sent.empty()) return;
  pass.asked = true;
  const absl::Duration now = BootTime();
  std::vector<RedisAnswer> answers;
  const absl::Status status = link_->Call(commands, &answers);
  if (!status.ok()) pass.error = status;
  for (size_t i = 0; i < answers.size(); ++i) {
    Take(*sent[i], std::move(answers[i]), now, pass);
  }
}

void RedisSender::Take(Waiting& waiting, RedisAnswer answer,
                       absl::Duration sent, RedisPass& pass) {
  const absl::Status status = answer.status();
  if (absl::IsResourceExhausted(status)) pass.full = true;
  const bool later = absl::IsUnavailable(status) || pass.full;
  if (!status.ok() && later) pass.error = status;
  if (!waiting.item.entry.has_value()) {
    waiting.answered = true;
    if (!waiting.item.answered) return;
    return waiting.item.answered(status.ok() ? std::move(answer)
                                             : RedisAnswer(StoreFailedError()));
  }
  if (!status.ok() && later) return;  // it stays
  waiting.answered = true;
  if (status.ok() && !answer->empty()) {
    return TakeEntry(waiting, *answer, sent, pass);
  }
  Log(LogSeverity::kError, "store", {{"error", status.message()}});
  Refuse(waiting, SessionDamagedError(), waiting.position, pass);
}

void RedisSender::TakeEntry(Waiting& waiting,
                            const std::vector<std::string>& words,
                            absl::Duration sent, RedisPass& pass) {
  const std::string& word = words[0];
  if (word == "OK" || word == "AGAIN") {
    waiting.item.claim->confirmed = absl::ToInt64Nanoseconds(sent);
    Keep(waiting);
  } else if (word == "EXISTS") {
    Refuse(waiting, SessionExistsError(), 0, pass);
  } else if (word == "BUSY") {
    Refuse(waiting, SessionBusyError(absl::Milliseconds(PositionOf(words))),
           waiting.position, pass);
  } else if (word == "GONE") {
    Refuse(waiting, SessionDeletedError(), SessionClaim::kGone, pass);
  } else {
    const int64_t position = PositionOf(words);
    if (word == "POSITION" && !waiting.item.claim->moved()) {
      if (EnterAgain(waiting, position)) return;
      pass.tokens_lost += std::max<int64_t>(waiting.position - position, 0);
    }
    Refuse(waiting, SessionMovedError(position), position, pass);
  }
}

void RedisSender::Keep(const Waiting& waiting) {
  const RedisItem& item = waiting.item;
  if (waiting.again) return;
  const bool begins = std::holds_alternative<BeginEntry>(*item.entry);
  const auto found = turns_.find(item.session_id);
  if (!begins && !std::holds_alternative<AppendEntry>(*item.entry)) {
    if (found != turns_.end()) turns_.erase(found);
    return;
  }
  Turn& turn = turns_[item.session_id];
  if (begins || turn.claim != item.claim) turn = Turn{item.claim, {}, 0};
  size_t bytes = 0;
  for (const std::string& word : waiting.command) bytes += word.size();
  while (!turn.kept.empty() && turn.bytes + bytes > kMostKept) {
    turn.bytes -= turn.kept.front().bytes;
    turn.kept.pop_front();
  }
  std::optional<ByteHold> hold;
  if (bytes <= kMostKept) hold = HoldCommand(waiting.command);
  if (!hold.has_value()) {  // those before it join nothing any more
    turn.kept.clear();
    turn.bytes = 0;
    return;
  }
  turn.kept.push_back(
      {waiting.position, bytes, waiting.command, *std::move(hold)});
  turn.bytes += bytes;
}

std::optional<ByteHold> RedisSender::HoldCommand(const RedisCommand& command) {
  if (budget_ == nullptr) return ByteHold();
  size_t bytes = sizeof(Turn::Kept);
  for (const std::string& word : command) bytes += sizeof(word) + word.size();
  const auto taken = static_cast<int64_t>(bytes);
  // A precaution: the other half is left to what is asked for.
  if (budget_->used() + taken > budget_->limit() / 2) return std::nullopt;
  return budget_->TryHold(taken);
}

bool RedisSender::EnterAgain(Waiting& waiting, int64_t position) {
  const RedisItem& item = waiting.item;
  const auto found = turns_.find(item.session_id);
  if (waiting.again || item.claim->moved() || found == turns_.end() ||
      found->second.claim != item.claim) {
    return false;
  }
  std::vector<Waiting> again;
  for (const Turn::Kept& kept : found->second.kept) {
    if (again.empty() && kept.position != position) continue;
    Waiting lost;
    lost.item.session_id = item.session_id;
    lost.item.claim = item.claim;
    lost.item.entry = AppendEntry();  // whatever it was: its command is made
    lost.made = lost.again = true;
    lost.command = kept.command;
    lost.position = waiting.position;
    again.push_back(std::move(lost));
  }
  if (again.empty()) return false;
  const bool first = lost_.emplace(item.session_id, std::move(again)).second;
  if (first) {
    Log(LogSeverity::kWarning, "store",
        {{"what", "tokens were lost, they are entered again"},
         {"tokens", waiting.position - position}});
  }
  waiting.answered = false;
  return true;
}

void RedisSender::InsertLost() {
  if (lost_.empty()) return;
  std::vector<Waiting> waiting;
  for (Waiting& each : waiting_) {
    const auto lost = lost_.find(each.item.session_id);
    if (lost != lost_.end() && each.item.entry.has_value()) {
      std::move(lost->second.begin(), lost->second.end(),
                std::back_inserter(waiting));
      lost_.erase(lost);
    }
    waiting.push_back(std::move(each));
  }
  waiting_ = std::move(waiting);
}

void RedisSender::Refuse(const Waiting& waiting, absl::Status status,
                         int64_t moved_to, RedisPass& pass) {
  const RedisItem& item = waiting.item;
  if (item.claim->moved()) return;  // by an entry before it
  item.claim->moved_to.store(moved_to, std::memory_order_release);
  item.claim->version.owned = false;
  turns_.erase(item.session_id);
  RedisPass::Refused refused;
  refused.session_id = item.session_id;
  refused.claim = item.claim;
  refused.answers = Answers(*item.entry);
  refused.status = std::move(status);
  pass.refused.push_back(std::move(refused));
}

void RedisSender::Own(const std::string& session_id,
                      std::shared_ptr<SessionClaim> claim,
                      absl::Duration sent) {
  claim->confirmed = absl::ToInt64Nanoseconds(sent);
  claim->version.owned = true;
  owned_[session_id] = std::move(claim);
}

std::vector<RedisSender::Owned> RedisSender::Due(absl::Duration interval) {
  std::vector<Owned> due;
  const absl::Duration now = BootTime();
  for (auto it = owned_.begin(); it != owned_.end();) {
    const auto current = it++;
    if (!current->second->version.owned) {
      turns_.erase(current->first);
      owned_.erase(current);
    } else if (!current->second->Confirmed(now, interval)) {
      due.push_back({current->first, current->second});
    }
  }
  return due;
}

}  // namespace txl
