#include "model/music/event_ids.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

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

}  // namespace txl
