#include "model/step/self_test_sessions.h"

#include <algorithm>

namespace txl {
namespace {

// Greedy; the filtered draw; the plain one, clusters first.
enum class Draw { kBest, kOfTen, kOfAll };

struct Outline {
  SelfTestStart start;
  int from;
  int lane;                   // its slot's, of those that are used
  std::vector<int64_t> cuts;  // of the prompt
  int64_t drawn;
  Draw draw;
};

// Where targets begin in the order of ids: behind those that are fed.
constexpr int64_t kTargets = 1001;

// Odd cuts, as requests come. The last one begins in the slot whose memory was
// full.
const std::vector<Outline>& Outlines() {
  static const auto* const outlines = new std::vector<Outline>{
      {SelfTestStart::kClear, -1, 0, {1, 3, 2, 7}, 4, Draw::kBest},
      {SelfTestStart::kClear, -1, 1, {5, 1, 4}, 5, Draw::kOfTen},
      {SelfTestStart::kFull, 0, 2, {3, 6}, 6, Draw::kOfAll},
      {SelfTestStart::kImport, 0, 0, {2, 3}, 3, Draw::kOfTen},
      {SelfTestStart::kCopy, 3, 1, {1, 3}, 2, Draw::kBest},
      {SelfTestStart::kClear, -1, 2, {4, 2}, 4, Draw::kOfAll}};
  return *outlines;
}

// First, middle and last: where offsets are smallest and largest.
std::vector<int32_t> Lanes(int32_t slots) {
  std::vector<int32_t> lanes = {0};
  if (slots > 2) lanes.push_back(slots / 2);
  if (slots > 1) lanes.push_back(slots - 1);
  return lanes;
}

// Numbers without a pattern (Knuth's multiplicative hashing).
int64_t Scattered(int64_t index, int64_t size) {
  const auto hash = static_cast<uint32_t>(index + 1) * uint32_t{2654435761};
  return static_cast<int64_t>((uint64_t{hash} * static_cast<uint64_t>(size)) >>
                              32);
}

// All bins in turn: now any of their ids, now their first, now their last one.
int32_t IdOf(const VocabularyBins& bins, int64_t index) {
  const auto count = static_cast<int64_t>(bins.ends.size());
  const int64_t bin = index % count;
  const int64_t begin = bin == 0 ? 0 : bins.ends[bin - 1];
  const int64_t end = bins.ends[bin];
  switch ((index / count) % 4) {
    case 1:
      return static_cast<int32_t>(begin);
    case 3:
      return static_cast<int32_t>(end - 1);
    default:
      return static_cast<int32_t>(begin + Scattered(index, end - begin));
  }
}

SamplingParams ParamsOf(Draw draw, uint64_t seed) {
  SamplingParams params;
  params.seed = seed;
  if (draw == Draw::kBest) params.temperature = 0;
  if (draw == Draw::kOfTen) {
    params.temperature = 0.8;
    params.top_k = 10;
  }
  return params;
}

}  // namespace

std::vector<SelfTestSession> SelfTestSessions(const VocabularyBins& bins,
                                              int32_t slots) {
  const std::vector<int32_t> lanes = Lanes(slots);
  std::vector<SelfTestSession> sessions;
  int64_t fed = 0;  // ids taken so far
  for (const Outline& outline : Outlines()) {
    if (outline.start == SelfTestStart::kCopy && lanes.size() == 1) continue;
    SelfTestSession session;
    session.start = outline.start;
    session.from = outline.from;
    session.slot = lanes[outline.lane % lanes.size()];
    session.cuts = outline.cuts;
    session.drawn = outline.drawn;
    session.params = ParamsOf(outline.draw, sessions.size() + 1);
    for (const int64_t cut : outline.cuts) {
      for (int64_t i = 0; i < cut; ++i) {
        session.prompt.push_back(IdOf(bins, fed));
        session.targets.push_back(IdOf(bins, kTargets + fed));
        ++fed;
      }
    }
    session.targets.pop_back();
    session.cuts.insert(session.cuts.end(), session.drawn - 1, 1);
    sessions.push_back(std::move(session));
  }
  return sessions;
}

std::vector<SelfTestGroup> SelfTestGroups(
    absl::Span<const SelfTestSession> sessions) {
  std::vector<SelfTestGroup> groups;
  for (size_t i = 0; i < sessions.size(); ++i) {
    const auto stands_apart = [&](const SelfTestGroup& group) {
      if (sessions[i].from >= static_cast<int>(group.begin)) return false;
      return std::none_of(sessions.begin() + group.begin, sessions.begin() + i,
                          [&](const SelfTestSession& other) {
                            return other.slot == sessions[i].slot;
                          });
    };
    if (groups.empty() || !stands_apart(groups.back()))
      groups.push_back({i, i});
    groups.back().end = i + 1;
  }
  return groups;
}

std::vector<std::vector<SelfTestShare>> SelfTestSteps(
    absl::Span<const SelfTestSession> sessions, SelfTestGroup group,
    const SelfTestLimits& limits) {
  struct Place {
    int64_t row = 0;
    size_t cut = 0;
    int64_t left = 0;  // of that cut
  };
  std::vector<Place> places(group.end - group.begin);
  for (size_t i = 0; i < places.size(); ++i) {
    places[i].left = sessions[group.begin + i].cuts[0];
  }
  std::vector<std::vector<SelfTestShare>> steps;
  for (;;) {
    std::vector<SelfTestShare> step;
    int64_t room = limits.max_rows;
    for (size_t i = 0; i < places.size(); ++i) {
      // Each step begins with another session, so that all get on.
      const size_t at = (i + steps.size()) % places.size();
      Place& place = places[at];
      const SelfTestSession& session = sessions[group.begin + at];
      const int64_t rows = std::min({place.left, room, limits.spare});
      if (rows == 0) continue;
      step.push_back({group.begin + at, place.row, rows});
      room -= rows;
      place.row += rows;
      place.left -= rows;
      if (place.left > 0 || ++place.cut == session.cuts.size()) continue;
      place.left = session.cuts[place.cut];
    }
    if (step.empty()) return steps;
    steps.push_back(std::move(step));
  }
}

}  // namespace txl
