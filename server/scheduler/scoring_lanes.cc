#include "server/scheduler/scoring_lanes.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace txl {
namespace {

// A lane costs a copy of a slot, about what a few rows take.
constexpr int64_t kLeastRowsOfLane = 16;

int64_t CommonIds(const std::vector<int32_t>& a,
                  const std::vector<int32_t>& b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return end.first - a.begin();
}

int64_t Size(const std::vector<int32_t>& ids) {
  return static_cast<int64_t>(ids.size());
}

}  // namespace

int64_t UsefulLanes(int64_t free_slots, int64_t alternatives, int64_t rows,
                    int64_t rows_per_step) {
  if (alternatives < 1) return 1;
  const int64_t mean = std::max<int64_t>(rows / alternatives, 1);
  const int64_t most =
      std::min({free_slots + 1, alternatives, rows / kLeastRowsOfLane,
                (rows_per_step + mean - 1) / mean});
  return std::max<int64_t>(most, 1);
}

ScoringLanes::ScoringLanes(
    const std::vector<std::vector<int32_t>>* alternatives,
    ScoringLanesOptions options)
    : alternatives_(alternatives),
      before_(std::move(options.before)),
      counter_(std::move(options.counter)),
      root_(options.root),
      spare_rows_(options.spare_rows),
      order_(alternatives->size()),
      shared_(alternatives->size(), 0),
      start_(alternatives->size(), 0) {
  if (counter_.has_value()) ticks_before_ = counter_->AddAll(before_);
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(), [this](int64_t a, int64_t b) {
    return (*alternatives_)[a] < (*alternatives_)[b];
  });
  for (size_t k = 0; k < order_.size(); ++k) {
    if (k > 0) shared_[k] = CommonIds(Ids(k - 1), Ids(k));
    logprobs_.emplace_back(Ids(k).size());
  }
  Lane first;
  first.slot = options.slot;
  first.share.end = static_cast<int64_t>(order_.size());
  Advance(first);
  lanes_.push_back(first);
}

const std::vector<int32_t>& ScoringLanes::Ids(int64_t k) const {
  return (*alternatives_)[order_[k]];
}

int64_t ScoringLanes::rows_now() const {
  int64_t rows = 0;
  for (const Lane& lane : lanes_) rows += lane.left();
  return rows;
}

int64_t ScoringLanes::RowsOf(const Share& share) const {
  int64_t rows = 0;
  for (int64_t k = share.begin; k < share.end; ++k) {
    rows += Size(Ids(k)) - std::max(shared_[k], first_row());
  }
  return rows;
}

int64_t ScoringLanes::rows_waiting() const {
  int64_t rows = 0;
  for (const Lane& lane : lanes_) rows += RowsOf(lane.share);
  for (const Share& share : waiting_) rows += RowsOf(share);
  return rows;
}

int64_t ScoringLanes::alternatives_waiting() const {
  int64_t count = 0;
  for (const Lane& lane : lanes_) count += lane.share.end - lane.share.begin;
  for (const Share& share : waiting_) count += share.end - share.begin;
  return count;
}

bool ScoringLanes::may_copy() const {
  const Lane& first = lanes_.front();
  return !first.clear && first.again == 0 && first.written <= spare_rows_;
}

void ScoringLanes::AddLanes(const std::vector<int32_t>& slots) {
  for (const int32_t slot : slots) {
    Lane lane;
    lane.slot = slot;
    lane.written = lanes_.front().written;
    lanes_.push_back(lane);
  }
  for (Lane& lane : lanes_) {
    if (lane.share.begin < lane.share.end) waiting_.push_back(lane.share);
    lane.share = Share();
  }
  // A share is cut where it has its part of the rows; the rest of a share stays
  // one, so that few beginnings are lost.
  int64_t total = 0;
  for (const Share& share : waiting_) total += RowsOf(share);
  const int64_t part = std::max<int64_t>((total + lanes() - 1) / lanes(), 1);
  std::deque<Share> cut;
  for (const Share& share : waiting_) {
    Share piece{share.begin, share.begin};
    int64_t rows = 0;
    while (piece.end < share.end) {
      rows += RowsOf({piece.end, piece.end + 1});
      ++piece.end;
      if (rows < part) continue;
      cut.push_back(piece);
      piece.begin = piece.end;
      rows = 0;
    }
    if (piece.begin < piece.end) cut.push_back(piece);
  }
  waiting_ = std::move(cut);
  for (Lane& lane : lanes_) Advance(lane);
}

std::vector<int32_t> ScoringLanes::TakeSlots(bool all) {
  std::vector<int32_t> slots;
  for (size_t i = lanes_.size(); i-- > 1;) {
    Lane& lane = lanes_[i];
    if (lane.left() > 0) {
      if (!all || lane.row > start_[lane.alternative]) continue;
      // What it was about to begin is another one's.
      --lane.share.begin;
    }
    if (lane.share.begin < lane.share.end) waiting_.push_back(lane.share);
    slots.push_back(lane.slot);
    lanes_.erase(lanes_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (!slots.empty() && lanes_.front().left() == 0) Advance(lanes_.front());
  return slots;
}

std::vector<int32_t> ScoringLanes::slots() const {
  std::vector<int32_t> slots;
  for (size_t i = 1; i < lanes_.size(); ++i) slots.push_back(lanes_[i].slot);
  return slots;
}

void ScoringLanes::Advance(Lane& lane) {
  while (lane.left() == 0) {
    if (lane.share.begin == lane.share.end) {
      if (waiting_.empty()) return;
      lane.share = waiting_.front();
      waiting_.pop_front();
    }
    Begin(lane, lane.share.begin++);
  }
}

void ScoringLanes::Begin(Lane& lane, int64_t k) {
  const bool follows = lane.begun && lane.alternative == k - 1;
  lane.row = std::max(follows ? shared_[k] : 0, first_row());
  lane.rows = std::max(Size(Ids(k)), lane.row);
  if (lane.row < lane.rows && lane.written - lane.row > spare_rows_) {
    lane.clear = true;
    lane.again = std::max<int64_t>(Size(before_) - 1, 0);
    lane.row = first_row();
    lane.written = 0;
  }
  if (counter_.has_value()) lane.ticks = BeatCounter(*counter_).AddAll(Ids(k));
  lane.alternative = k;
  lane.begun = true;
  start_[k] = lane.row;
}

int64_t ScoringLanes::PlanRows(int64_t count, std::vector<StepRow>& rows,
                               std::vector<int32_t>& clear) {
  // The lanes with the least to do leave their part to the others.
  std::vector<Lane*> lanes;
  for (Lane& lane : lanes_) {
    if (lane.left() > 0) lanes.push_back(&lane);
  }
  std::stable_sort(lanes.begin(), lanes.end(),
                   [](Lane* a, Lane* b) { return a->left() < b->left(); });
  int64_t planned = 0;
  for (size_t i = 0; i < lanes.size(); ++i) {
    Lane& lane = *lanes[i];
    const auto others = static_cast<int64_t>(lanes.size() - i);
    const int64_t part =
        std::min(lane.left(), (count - planned + others - 1) / others);
    if (part == 0) continue;
    if (lane.clear) {
      clear.push_back(lane.slot);
      lane.clear = false;
      cleared_ = cleared_ || &lane == &lanes_.front();
    }
    for (int64_t row = 0; row < part; ++row) PlanRow(lane, rows);
    planned += part;
    if (&lane == &lanes_.front()) written_ = std::max(written_, lane.written);
    Advance(lane);
  }
  return planned;
}

void ScoringLanes::PlanRow(Lane& lane, std::vector<StepRow>& rows) {
  StepRow row = {.slot = lane.slot};
  if (lane.again > 0) {
    row.kind = RowKind::kRebuild;
    row.position = root_ - lane.again;
    row.token_id = before_[Size(before_) - 1 - lane.again];
    if (counter_.has_value()) {
      row.ticks = ticks_before_[Size(before_) - 1 - lane.again];
    }
    --lane.again;
    rows.push_back(row);
    return;
  }
  const std::vector<int32_t>& ids = Ids(lane.alternative);
  row.kind = RowKind::kScore;
  row.position = root_ + lane.row;
  row.token_id = lane.row == 0 ? before_.back() : ids[lane.row - 1];
  row.score_target = ids[lane.row];
  if (counter_.has_value()) {
    row.ticks = lane.row == 0 ? ticks_before_.back() : lane.ticks[lane.row - 1];
  }
  rows.push_back(row);
  planned_.push_back({lane.alternative, lane.row});
  ++lane.row;
  lane.written = std::max(lane.written, lane.row);
}

void ScoringLanes::Collect(float logprob) {
  const Planned row = planned_.front();
  planned_.pop_front();
  logprobs_[row.alternative][row.row] = logprob;
}

std::vector<std::vector<std::optional<float>>> ScoringLanes::TakeLogprobs() {
  std::vector<std::vector<std::optional<float>>> given(order_.size());
  for (size_t k = 0; k < order_.size(); ++k) {
    const int64_t from_former =
        std::min(start_[k], Size(Ids(static_cast<int64_t>(k))));
    for (int64_t row = first_row(); row < from_former; ++row) {
      logprobs_[k][row] = logprobs_[k - 1][row];
    }
  }
  for (size_t k = 0; k < order_.size(); ++k) {
    given[order_[k]] = std::move(logprobs_[k]);
  }
  return given;
}

}  // namespace txl
