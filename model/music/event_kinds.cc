#include "model/music/event_kinds.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "model/music/event_ids.h"

namespace txl {
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
