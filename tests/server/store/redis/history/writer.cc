#include "tests/server/store/redis/history/writer.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace txl::history {
namespace {

constexpr char kExpire[] = "1000000";
constexpr size_t kIdsAt = 14;  // of what load and acquire answer

std::string PositionOf(const std::string& text) {
  return absl::StrCat(text.size() / kIdBytes);
}

}  // namespace

std::string NextChain(const std::string& chain, const std::string& change) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : absl::StrCat(chain, "/", change)) {
    hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  }
  return absl::StrCat(absl::Hex(hash));
}

Writer::Writer(int index, simulation::Random* random, History* history)
    : index_(index), random_(random), history_(history) {}

void Writer::Set(const std::string& function, Words args) {
  waiting_ = true;
  command_ = {++asked_, function, std::move(args), text_};
}

Words Writer::Known() const {
  if (!holds_) return {"", "", "", ""};
  return {epoch_, nonce_, PositionOf(text_), chain_};
}

const Command& Writer::Ask() {
  if (waiting_) return command_;
  Words args = Known();
  const std::string lease = absl::StrCat(kLeaseMillis);
  switch (state_) {
    case State::kIdle:
      if (!text_.empty() && random_->Chance(0.3)) {
        AskToRewind();
        break;
      }
      // A request that comes again, from anywhere, may take over at once.
      for (const std::string& arg :
           {std::string("m"), absl::StrCat("request", random_->Below(6)),
            absl::StrCat("n", index_, ".", ++nonces_), absl::StrCat(index_),
            lease}) {
        args.push_back(arg);
      }
      Set("acquire", std::move(args));
      break;
    case State::kAcquired:
      for (const std::string& arg :
           {std::string("i"), std::string("h"), lease, std::string(kExpire)}) {
        args.push_back(arg);
      }
      Set("begin", std::move(args));
      break;
    case State::kTurn:
      AskInTurn();
      break;
    case State::kHealing:
      Set("load", {"", "", "", ""});
      break;
  }
  return command_;
}

void Writer::AskInTurn() {
  if (pending_.empty() && random_->Chance(0.1)) {
    Words args = Known();
    args.push_back(absl::StrCat(kLeaseMillis));
    return Set("touch", std::move(args));
  }
  if (!pending_.empty()) return AskToAppend("append", pending_);
  const int append =
      history_->Invoke(text_, static_cast<int>(random_->Between(1, kMostIds)));
  AskToAppend(random_->Chance(0.25) ? "end" : "append",
              history_->IdsOf(append));
}

void Writer::AskToAppend(const std::string& function, const std::string& ids) {
  Words args = Known();
  pending_ = ids;
  for (const std::string& arg :
       {PositionOf(ids), NextChain(chain_, ids), ids}) {
    args.push_back(arg);
  }
  if (function == "append") {
    args.push_back("");
    args.push_back(absl::StrCat(kLeaseMillis));
  } else {
    for (const char* arg : {"h", "record", kExpire}) args.push_back(arg);
  }
  Set(function, std::move(args));
}

// To the begin of one of its appends.
void Writer::AskToRewind() {
  const std::vector<int> appends = History::AppendsIn(text_);
  const std::string first = history_->IdsOf(random_->Pick(appends));
  const std::string to = PositionOf(text_.substr(0, text_.find(first)));
  Words args = Known();
  for (const std::string& arg :
       {to, NextChain(chain_, absl::StrCat("to ", to, " by ", index_)),
        std::string("h"), absl::StrCat(index_),
        absl::StrCat("n", index_, ".", ++nonces_), std::string(kExpire)}) {
    args.push_back(arg);
  }
  Set("rewind", std::move(args));
}

void Writer::Answer(const Words& answer, int64_t version) {
  waiting_ = false;
  const std::string& said = answer[0];
  const std::string& function = command_.function;
  if (function == "acquire") return Acquired(answer);
  if (function == "load") return Heal(answer, version);
  if (said == "OK" || said == "AGAIN") {
    if (function == "begin") state_ = State::kTurn;
    if (function == "append" || function == "end") Appended(version);
    if (function == "end") state_ = State::kIdle;
    if (function == "rewind") {
      // What it holds is of before: known no more.
      Drop();
    }
  } else if (said == "BUSY") {
    return;  // of a rewind
  } else if (said == "POSITION" && function != "rewind") {
    state_ = State::kHealing;
  } else {
    Drop();
  }
}

void Writer::Acquired(const Words& answer) {
  if (answer[0] == "BUSY" || answer[0] == "GONE") return;
  epoch_ = answer[1];
  nonce_ = answer[2];
  if (answer[0] != "SAME") {
    chain_ = answer[4];
    text_ = answer[kIdsAt];
    holds_ = true;
  }
  state_ = State::kAcquired;
}

void Writer::Appended(int64_t version) {
  for (const int append : History::AppendsIn(pending_)) {
    history_->Acknowledge(append, version);
  }
  chain_ = NextChain(chain_, pending_);
  text_ += pending_;
  pending_.clear();
}

void Writer::Heal(const Words& answer, int64_t version) {
  const std::string whole = text_ + pending_;
  const std::string& stored = answer[0] == "OK" ? answer[kIdsAt] : whole;
  if (answer[0] != "OK" || answer[1] != epoch_ || answer[2] != nonce_ ||
      !whole.starts_with(stored)) {
    return Drop();
  }
  // What it holds of these is confirmed, the rest is told again.
  for (const int append : History::AppendsIn(stored)) {
    history_->Acknowledge(append, version);
  }
  chain_ = answer[4];
  text_ = stored;
  pending_ = whole.substr(stored.size());
  state_ = State::kTurn;
}

void Writer::Drop() {
  state_ = State::kIdle;
  holds_ = false;
  text_.clear();
  pending_.clear();
}

void Writer::Restart() {
  waiting_ = false;
  Drop();
}

}  // namespace txl::history
