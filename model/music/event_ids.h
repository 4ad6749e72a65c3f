#pragma once

// The events of a music model by name, the ids of a file while they are found,
// and the kinds of events.

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "model/sampling/token_kinds.h"
#include "model/text/vocabulary.h"

namespace txl {

// What the ids don't say of the file, and how often.
struct LeftOut {
  std::string what;  // an event without an id ("Note On_109"), or a plain name
  int64_t count = 0;
};

struct MidiIds {
  std::vector<int32_t> ids;
  std::vector<LeftOut> left_out;  // ordered by name
};

// The name of an event. A vocabulary spells a space in it as %20.
std::string EventName(const Vocabulary& vocabulary, int32_t id);

// Thread-safe.
class EventIds {
 public:
  explicit EventIds(const Vocabulary& vocabulary);

  // -1: there is no such event.
  int32_t Find(absl::string_view event) const;
  bool Has(absl::string_view event) const { return Find(event) >= 0; }

  bool HasPrefix(absl::string_view prefix) const;

  // The closest value for which there is an event KIND_VALUE. The smaller one
  // wins a tie. Returns `value` if there is no event of this kind.
  int64_t Closest(absl::string_view kind, int64_t value) const;

 private:
  absl::flat_hash_map<std::string, int32_t> ids_;
  absl::flat_hash_map<std::string, absl::btree_set<int64_t>> values_;
};

// What names its events so; midi_encoder.h says whose rules these are.
enum class MusicFamily { kRemi, kCompoundWord, kMusicautobot };

// Nothing: these are not the events of a family.
std::optional<MusicFamily> FamilyOf(const EventIds& events);

class EventList {
 public:
  explicit EventList(const EventIds& events) : events_(events) {}

  const EventIds& events() const { return events_; }

  // Adds all, or none if one has no id: an event means nothing without those
  // that it comes with. The first that is missing counts as left out.
  void Add(std::initializer_list<std::string> events);

  // EventIds::Closest; counts `value` as left out if the result differs.
  int64_t Closest(absl::string_view kind, int64_t value);

  void LeaveOut(absl::string_view what, int64_t count = 1);
  MidiIds Take();

 private:
  const EventIds& events_;
  std::vector<int32_t> ids_;
  std::map<std::string, int64_t, std::less<>> left_out_;
};

// The grammar of a family of music as kinds of tokens
// (model/sampling/token_kinds.h).

// Which kinds of events follow which in the ids that MidiEncoder makes; with
// musicautobot also as its predict() has it, which draws durations behind notes
// and separators only. Events of no kind (masks, classes) are never in a piece.
// Empty: the vocabulary isn't one of music.
std::vector<TokenKind> KindsOfMusic(const Vocabulary& vocabulary);

}  // namespace txl
