#include "model/music/event_ids.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace txl {

std::string EventName(const Vocabulary& vocabulary, int32_t id) {
  return absl::StrReplaceAll(vocabulary.TokenBytes(id), {{"%20", " "}});
}

EventIds::EventIds(const Vocabulary& vocabulary) {
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string event = EventName(vocabulary, id);
    ids_.emplace(event, id);
    const size_t split = event.rfind('_');
    int64_t value = 0;
    if (split != std::string::npos &&
        absl::SimpleAtoi(event.substr(split + 1), &value)) {
      values_[event.substr(0, split)].insert(value);
    }
  }
}

int32_t EventIds::Find(absl::string_view event) const {
  const auto found = ids_.find(event);
  return found == ids_.end() ? -1 : found->second;
}

bool EventIds::HasPrefix(absl::string_view prefix) const {
  return std::any_of(ids_.begin(), ids_.end(), [prefix](const auto& entry) {
    return absl::StartsWith(entry.first, prefix);
  });
}

int64_t EventIds::Closest(absl::string_view kind, int64_t value) const {
  const auto found = values_.find(kind);
  if (found == values_.end()) return value;
  const absl::btree_set<int64_t>& values = found->second;
  const auto above = values.lower_bound(value);
  if (above == values.begin()) return *above;
  const int64_t below = *std::prev(above);
  return above == values.end() || value - below <= *above - value ? below
                                                                  : *above;
}

std::optional<MusicFamily> FamilyOf(const EventIds& events) {
  if (events.Has("xxbos") && events.Has("xxsep") && events.Has("d1")) {
    return MusicFamily::kMusicautobot;
  }
  if (!events.Has("Bar_None")) return std::nullopt;
  if (events.Has("Position_1/16") && events.HasPrefix("Note On_")) {
    return MusicFamily::kRemi;
  }
  if (events.Has("Beat_0") && events.HasPrefix("Note_Pitch_")) {
    return MusicFamily::kCompoundWord;
  }
  return std::nullopt;
}

void EventList::Add(std::initializer_list<std::string> events) {
  const size_t before = ids_.size();
  for (const std::string& event : events) {
    const int32_t id = events_.Find(event);
    if (id < 0) {
      ids_.resize(before);
      LeaveOut(event);
      return;
    }
    ids_.push_back(id);
  }
}

int64_t EventList::Closest(absl::string_view kind, int64_t value) {
  const int64_t closest = events_.Closest(kind, value);
  if (closest != value) LeaveOut(absl::StrCat(kind, "_", value));
  return closest;
}

void EventList::LeaveOut(absl::string_view what, int64_t count) {
  if (count > 0) left_out_[std::string(what)] += count;
}

MidiIds EventList::Take() {
  MidiIds taken{std::move(ids_), {}};
  for (const auto& [what, count] : left_out_) {
    taken.left_out.push_back({what, count});
  }
  return taken;
}

namespace {

// How the events of a kind are named.
enum class Spelling {
  kWhole,    // by `stem` alone
  kPrefix,   // by `stem` and anything behind it
  kNumbers,  // by `stem` and a number
};

struct EventKind {
  absl::string_view name;
  Spelling spelling;
  absl::string_view stem;
  std::vector<std::string> next;
};
using EventKinds = std::vector<EventKind>;

EventKinds RemiKinds() {
  constexpr Spelling kPrefix = Spelling::kPrefix;
  return {{"Bar", kPrefix, "Bar_", {"Bar", "Position"}},
          {"Position",
           kPrefix,
           "Position_",
           {"Chord", "Tempo Class", "Note Velocity"}},
          {"Chord", kPrefix, "Chord_", {"Bar", "Position"}},
          {"Tempo Class", kPrefix, "Tempo Class_", {"Tempo Value"}},
          {"Tempo Value", kPrefix, "Tempo Value_", {"Bar", "Position"}},
          {"Note Velocity", kPrefix, "Note Velocity_", {"Note On"}},
          {"Note On", kPrefix, "Note On_", {"Note Duration"}},
          {"Note Duration", kPrefix, "Note Duration_", {"Bar", "Position"}}};
}

// A beat can be empty: its events may have no ids (EventList::Add).
EventKinds CompoundWordKinds() {
  constexpr Spelling kPrefix = Spelling::kPrefix;
  return {{"Bar", kPrefix, "Bar_", {"Bar", "Beat", "EOS"}},
          {"Beat",
           kPrefix,
           "Beat_",
           {"Chord", "Tempo", "Note_Pitch", "Beat", "Bar"}},
          {"Chord", kPrefix, "Chord_", {"Tempo", "Note_Pitch", "Beat", "Bar"}},
          {"Tempo", kPrefix, "Tempo_", {"Note_Pitch", "Beat", "Bar"}},
          {"Note_Pitch", kPrefix, "Note_Pitch_", {"Note_Velocity"}},
          {"Note_Velocity", kPrefix, "Note_Velocity_", {"Note_Duration"}},
          {"Note_Duration",
           kPrefix,
           "Note_Duration_",
           {"Note_Pitch", "Beat", "Bar"}},
          {"EOS", kPrefix, "EOS_", {"Bar"}}};
}

EventKinds MusicautobotKinds() {
  return {{"Start", Spelling::kWhole, "xxbos", {"Pad"}},
          {"Pad", Spelling::kWhole, "xxpad", {"Note", "Separator"}},
          {"Separator", Spelling::kWhole, "xxsep", {"Duration"}},
          {"Note", Spelling::kNumbers, "n", {"Duration"}},
          {"Duration", Spelling::kNumbers, "d", {"Note", "Separator"}}};
}

EventKinds KindsOfFamily(MusicFamily family) {
  switch (family) {
    case MusicFamily::kRemi:
      return RemiKinds();
    case MusicFamily::kCompoundWord:
      return CompoundWordKinds();
    case MusicFamily::kMusicautobot:
      return MusicautobotKinds();
  }
  return {};
}

bool IsOfKind(const EventKind& kind, absl::string_view event) {
  if (!absl::ConsumePrefix(&event, kind.stem)) return false;
  switch (kind.spelling) {
    case Spelling::kWhole:
      return event.empty();
    case Spelling::kPrefix:
      return true;
    case Spelling::kNumbers:
      return !event.empty() &&
             std::all_of(event.begin(), event.end(), absl::ascii_isdigit);
  }
  return false;
}

void AddToken(int32_t id, std::vector<TokenKind::Range>& tokens) {
  if (!tokens.empty() && tokens.back().second == id - 1) {
    tokens.back().second = id;
  } else {
    tokens.emplace_back(id, id);
  }
}

}  // namespace

std::vector<TokenKind> KindsOfMusic(const Vocabulary& vocabulary) {
  if (vocabulary.kind() != "events") return {};
  const std::optional<MusicFamily> family = FamilyOf(EventIds(vocabulary));
  if (!family.has_value()) return {};
  const EventKinds grammar = KindsOfFamily(*family);
  std::vector<TokenKind> kinds(grammar.size());
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string event = EventName(vocabulary, id);
    for (size_t i = 0; i < grammar.size(); ++i) {
      if (IsOfKind(grammar[i], event)) AddToken(id, kinds[i].tokens);
    }
  }
  const auto is_there = [&](const std::string& name) {
    for (size_t i = 0; i < grammar.size(); ++i) {
      if (grammar[i].name == name) return !kinds[i].tokens.empty();
    }
    return false;
  };
  for (size_t i = 0; i < grammar.size(); ++i) {
    kinds[i].name = std::string(grammar[i].name);
    std::vector<std::string> next;
    std::copy_if(grammar[i].next.begin(), grammar[i].next.end(),
                 std::back_inserter(next), is_there);
    if (!next.empty()) kinds[i].next = std::move(next);
  }
  // Chords, for one, are in some dictionaries only.
  std::erase_if(kinds,
                [](const TokenKind& kind) { return kind.tokens.empty(); });
  return kinds;
}

}  // namespace txl
