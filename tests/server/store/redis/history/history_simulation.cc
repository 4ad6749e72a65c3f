#include "tests/server/store/redis/history/history_simulation.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/server/store/redis/history/writer.h"

namespace txl::history {
namespace {

constexpr char kKey[] = "txl:{default/a}";
constexpr int kWriters = 3;
constexpr int kSteps = 200;
constexpr size_t kMostBehind = 6;  // changes that a replica may lack

// One history on its way.
class World {
 public:
  World(LuaLibrary& library, uint64_t seed, bool tracing)
      : library_(library),
        random_(seed),
        failovers_(seed % 2 == 1),
        tracing_(tracing) {
    for (int i = 0; i < kWriters; ++i) {
      writers_.emplace_back(i, &random_, &history_);
    }
    store_.now_millis = 1'000'000;
    Execute("create", {"born", "m", "2", "h", kFirstChain, "0", "", "1000000"});
    replica_.emplace_back(version_, store_);
  }

  HistoryResult Run() {
    for (int step = 0; step < kSteps && result_.violation.empty(); ++step) {
      Step(step);
    }
    return std::move(result_);
  }

 private:
  struct InFlight {
    int writer = 0;
    Command command;
  };

  void Step(int step) {
    const int64_t dice = random_.Below(100);
    const auto writer = static_cast<int>(random_.Below(kWriters));
    if (dice < 42) {
      if (step < paused_until_[writer]) return;
      // What is on its way is seldom asked again.
      if (writers_[writer].waiting() && random_.Chance(0.8)) return;
      in_flight_.push_back({writer, writers_[writer].Ask()});
    } else if (dice < 86) {
      if (!in_flight_.empty()) Arrive(step);
    } else if (dice < 95) {
      // A moment, or longer than a session is owned.
      store_.now_millis += random_.Chance(0.85)
                               ? random_.Below(1000)
                               : kLeaseMillis + random_.Below(2000);
      Count(Event::kTime);
    } else if (dice < 97) {
      paused_until_[writer] = step + 10 + random_.Below(20);
      Count(Event::kPause);
      Trace(absl::StrCat("writer ", writer, " stands still"));
    } else if (dice < 98) {
      writers_[writer].Restart();
      Count(Event::kRestart);
      Trace(absl::StrCat("writer ", writer, " begins anew"));
    } else if (failovers_ && dice == 98) {
      FailOver();
    }
  }

  // A command, not always the oldest, comes to the store, or is lost.
  void Arrive(int step) {
    const size_t place = random_.Chance(0.7)
                             ? 0
                             : static_cast<size_t>(random_.Below(
                                   static_cast<int64_t>(in_flight_.size())));
    const InFlight sent = in_flight_[place];
    in_flight_.erase(in_flight_.begin() + static_cast<int64_t>(place));
    if (random_.Chance(0.1)) return Count(Event::kLostCommand);
    Writer& writer = writers_[sent.writer];
    const bool awaited = writer.awaits(sent.command.number);
    if (!awaited) Count(Event::kLateCommand);
    const std::string before = StoredText();
    const Words answer = Execute(sent.command.function, sent.command.args);
    if (sent.command.function == "rewind" && answer[0] == "OK") {
      Count(Event::kRewound);
      history_.Rewind(before,
                      static_cast<size_t>(std::stoul(sent.command.args[4])));
    }
    Trace(absl::StrCat("writer ", sent.writer, " ", sent.command.function, "(",
                       absl::CEscape(absl::StrJoin(sent.command.args, " ")),
                       "): ", absl::CEscape(absl::StrJoin(answer, " "))));
    Judge(sent, answer);
    if (!awaited || random_.Chance(0.2)) return Count(Event::kLostAnswer);
    // Who is refused comes back later.
    if (answer[0] == "BUSY") paused_until_[sent.writer] = step + 15;
    writer.Answer(answer, version_);
  }

  Words Execute(const std::string& function, const Words& args) {
    const absl::StatusOr<Words> answer =
        library_.Call(&store_, absl::StrCat("txl_1_", function), kKey, args);
    if (!answer.ok()) {
      result_.violation = answer.status().ToString();
      return {"ERROR"};
    }
    if (answer->empty()) {
      result_.violation = "an empty answer";
      return {"ERROR"};
    }
    return *answer;
  }

  void Judge(const InFlight& sent, const Words& answer) {
    const std::string& function = sent.command.function;
    const std::string& said = answer[0];
    if (said == "FENCED") Count(Event::kFenced);
    if (said == "POSITION") Count(Event::kPosition);
    if (said == "BUSY") Count(Event::kBusy);
    if (said == "AGAIN") Count(Event::kRepeated);
    const bool same = function == "acquire" && said == "SAME";
    if (same) {
      Count(Event::kCached);
      Expect(history_.Read(sent.command.text));
    }
    if (said == "OK" && function == "acquire") Count(Event::kTakenOver);
    if (said != "OK" && !same) return;
    if (function == "append" || function == "end") Count(Event::kAppended);
    if (function != "load") {
      replica_.emplace_back(++version_, store_);
      if (replica_.size() > kMostBehind) replica_.pop_front();
    }
    Expect(history_.Read(StoredText()));
  }

  std::string StoredText() const {
    return store_.Text(absl::StrCat(kKey, ":i"));
  }

  void FailOver() {
    const auto kept = static_cast<size_t>(
        random_.Below(static_cast<int64_t>(replica_.size())));
    if (replica_[kept].first == version_) return;
    Count(Event::kFailover);
    Trace(absl::StrCat("failover: ", version_ - replica_[kept].first,
                       " changes are lost"));
    const int64_t now = store_.now_millis;
    store_ = replica_[kept].second;
    store_.now_millis = now;
    history_.FailOver(replica_[kept].first, version_);
    replica_.resize(kept + 1);
  }

  void Expect(const std::string& wrong) {
    if (result_.violation.empty()) result_.violation = wrong;
  }
  void Count(Event event) { ++result_.happened[static_cast<int>(event)]; }
  void Trace(const std::string& line) {
    if (tracing_) result_.trace.push_back(line);
  }

  LuaLibrary& library_;
  simulation::Random random_;
  const bool failovers_;
  const bool tracing_;
  History history_;
  std::vector<Writer> writers_;
  std::array<int64_t, kWriters> paused_until_{};
  std::vector<InFlight> in_flight_;
  RedisMap store_;
  int64_t version_ = 0;
  // The last states of the store, each with its version; the present one last.
  std::deque<std::pair<int64_t, RedisMap>> replica_;
  HistoryResult result_;
};

}  // namespace

HistoryResult RunHistory(LuaLibrary& library, uint64_t seed, bool tracing) {
  return World(library, seed, tracing).Run();
}

HistoriesResult RunHistories(LuaLibrary& library, uint64_t first,
                             int64_t count) {
  HistoriesResult all;
  for (; all.run < count && all.violation.empty(); ++all.run) {
    const uint64_t seed = first + static_cast<uint64_t>(all.run);
    const HistoryResult one = RunHistory(library, seed, /*tracing=*/false);
    for (int i = 0; i < kEvents; ++i) all.happened[i] += one.happened[i];
    if (!one.violation.empty()) {
      all.violation = absl::StrCat("seed ", seed, ": ", one.violation);
    }
  }
  return all;
}

}  // namespace txl::history
