#include "server/scheduler/turn_prefixes.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <utility>

namespace txl {
namespace {

// A session that holds more ids does not stay findable in its slot: its ids
// would be copied at the end of each turn.
constexpr int64_t kMostIdsInSlot = 16384;
// Of an image's rows, one in so many is fed in the time of the copy.
constexpr int64_t kRowsOfACopy = 8;

bool ScoresInput(const Turn& turn) {
  return turn.kind == TurnKind::kScore ||
         (turn.kind == TurnKind::kAppend && turn.return_scored);
}

// With which a turn of the same prompt could begin, out of an image: where it
// samples nothing, a row of its own has to wait until the image has come in.
int64_t MostRowsOfImage(const Turn& turn) {
  const bool samples = turn.kind == TurnKind::kGenerate;
  return std::max<int64_t>(SkippableRows(turn) - (samples ? 0 : 1), 0);
}

// Of `scores` those of the first `ids` ids.
std::shared_ptr<const PrefixScores> FirstOf(
    const std::shared_ptr<const PrefixScores>& scores, int64_t ids) {
  if (scores == nullptr || scores->size() < ids) return scores;
  auto first = std::make_shared<PrefixScores>(*scores);
  first->logprobs.resize(std::max<int64_t>(ids - 1, 0));
  first->top_logprobs.resize(first->logprobs.size());
  return first;
}

}  // namespace

TurnPrefixes::TurnPrefixes(const SchedulerOptions& options, StepRunner* runner,
                           Metrics* metrics)
    : least_rows_(options.least_prefix_rows),
      guesses_(runner->info().verifies_guesses ? options.speculate_tokens : 0),
      runner_(runner),
      info_(runner->info()),
      metrics_(metrics),
      ring_{.mem_len = info_.mem_len,
            .spare = info_.spare_rows,
            .window = info_.window,
            .zero_start = info_.identity.zero_start},
      extents_(runner->info().slots, {ring_.first_position(), 0, 0}),
      cache_({options.prefix_cache_bytes, runner->info().slots,
              options.least_prefix_rows}) {}

PrefixQuery TurnPrefixes::QueryFor(const Turn& turn) const {
  PrefixQuery query;
  if (!turn.prefix_tenant.has_value()) return query;
  query.tenant = *turn.prefix_tenant;
  query.ids = turn.input;
  query.scores = ScoresInput(turn);
  query.top_logprobs = turn.top_logprobs;
  // The log-probabilities of ids that are asked for are not kept.
  const bool named = query.scores && turn.logprob_ids != nullptr;
  query.most_rows = named ? 0 : SkippableRows(turn);
  query.most_rows_of_image = std::min(query.most_rows, MostRowsOfImage(turn));
  return query;
}

bool TurnPrefixes::IsFree(int32_t slot, const SlotTable& slots) const {
  return slot >= 0 && !slots.at(slot).key.has_value();
}

int32_t TurnPrefixes::Place(const Turn& turn, const SlotTable& slots,
                            PrefixHit* taken) const {
  const std::vector<int32_t> free = slots.FreeSlots();
  const PrefixHits hits = cache_.Find(QueryFor(turn));
  const PrefixChoice choice = ChoosePrefix(hits, IsFree(hits.slot.slot, slots),
                                           info_.mem_len, least_rows_);
  if (choice.kind == PrefixChoice::Kind::kTakeOver) {
    *taken = hits.slot;
    return hits.slot.slot;
  }
  // A slot that is used for the first time takes its memory then.
  return cache_.misses() ? free.front() : cache_.LeastUseful(free);
}

void TurnPrefixes::Overwrite(int32_t slot, int64_t position) {
  // The state that moves in, or is fed again, is right in its last M rows.
  extents_[slot] = {
      std::max(position - 1 - info_.mem_len, ring_.first_position()), 0, 0};
  KeepAsImage(slot);
}

void TurnPrefixes::KeepAsImage(int32_t slot) {
  std::optional<KeptPrompt> kept = cache_.TakeSlot(slot);
  if (!kept.has_value() || kept->rows < LeastRowsOfImage(kept->rows)) return;
  if (!IsWorthAnImage(*kept)) return;
  Export(std::nullopt, false, slot, *std::move(kept));
}

void TurnPrefixes::Entered(const Turn& turn, const TurnSlot& slot) {
  if (!on() || slot.index < 0) return;
  const int64_t position = turn.lease.position();
  SlotExtent& extent = extents_[slot.index];
  extent.written_before = extent.written;
  extent.written =
      std::max(extent.written, position + MostTokens(turn) + guesses_);
  if (!cache_.Holds(slot.index) || slot.taken.rows > 0) return;
  // A lane may be cleared between two alternatives, and fed again.
  const bool clears = turn.kind == TurnKind::kAlternatives &&
                      MostTokens(turn) > info_.spare_rows;
  const int64_t shortest = Shortest(extent);
  if (position < cache_.IdsIn(slot.index)) {
    // The session was rewound: what it holds now the next turn's end says.
    cache_.TakeSlot(slot.index);
  } else if (!clears && shortest <= cache_.RowsIn(slot.index)) {
    cache_.Shorten(slot.index, shortest);
  } else if (IsDivisible(extent.written_before)) {
    KeepAsImage(slot.index);
  } else {
    // A session goes on turn by turn: no image for each.
    cache_.TakeSlot(slot.index);
  }
}

int64_t TurnPrefixes::Shortest(const SlotExtent& extent) const {
  int64_t shortest = 1;
  if (!IsDivisible(extent.written)) {
    shortest = std::max(shortest, extent.written - info_.spare_rows);
  }
  if (extent.first > ring_.first_position()) {
    shortest = std::max(shortest, extent.first + info_.mem_len);
  }
  return shortest;
}

int64_t TurnPrefixes::RowsFor(const Turn& turn) const {
  const PrefixHits hits = cache_.Find(QueryFor(turn));
  return ChoosePrefix(hits, /*slot_is_free=*/false, info_.mem_len, least_rows_)
      .rows;
}

int64_t TurnPrefixes::RowsOfLeader(const Sequence& leader, int32_t leader_slot,
                                   const Turn& turn) const {
  const Turn& other = leader.turn();
  const absl::Span<const int32_t> fed = leader.fed();
  // Its slot serves as long as none of the prompt's rows was overwritten.
  const bool serves =
      other.kind != TurnKind::kAlternatives && other.lease.position() == 0;
  if (!serves || other.priority < turn.priority ||
      other.prefix_tenant != turn.prefix_tenant) {
    return 0;
  }
  const int64_t common = CommonIds(fed, turn.input);
  int64_t rows = std::min({common, SkippableRows(turn), leader.prompt_end()});
  if (ScoresInput(turn)) rows = std::min(rows, common - 1);
  if (rows < ShortestOfLeader(leader, leader_slot)) return 0;
  if (!ScoresInput(turn)) return rows;
  const bool scores = leader.scores_input() && other.logprob_ids == nullptr &&
                      turn.logprob_ids == nullptr &&
                      other.top_logprobs >= turn.top_logprobs;
  return scores ? rows : 0;
}

int64_t TurnPrefixes::ShortestOfLeader(const Sequence& leader,
                                       int32_t slot) const {
  // It has written little of what it may write yet.
  SlotExtent extent = extents_[slot];
  extent.written = std::max(extent.written_before,
                            std::ssize(leader.fed()) + info_.depth + guesses_);
  return Shortest(extent);
}

void TurnPrefixes::Begin(Sequence& sequence, TurnSlot& slot,
                         TurnPrefix& prefix) {
  if (!on() || sequence.SkippableRows() < least_rows_) return;
  PrefixHits hits = cache_.Find(QueryFor(sequence.turn()));
  PrefixChoice choice = ChoosePrefix(hits, false, info_.mem_len, least_rows_);
  if (slot.taken.rows > 0) {
    hits.slot = std::exchange(slot.taken, {});
    choice = {PrefixChoice::Kind::kTakeOver, hits.slot.rows};
    cache_.TakeSlot(slot.index);
  }
  const bool imports = choice.kind == PrefixChoice::Kind::kImport;
  const PrefixHit& hit = imports ? hits.image : hits.slot;
  if (choice.kind == PrefixChoice::Kind::kCopy) {
    runner_->Copy(hit.slot, slot.index);
    CopyExtent(hit.slot, slot.index);
  }
  if (imports) {
    prefix.image = hit.image;
    SlotExtent& extent = extents_[slot.index];
    extent.first = hit.image->position - hit.image->rows;
    extent.written_before = hit.image->position;
    slot.import = runner_->Import(slot.index, prefix.image);
    if (info_.derives) {
      slot.rows_to_derive = slot.rows_underived = prefix.image->rows;
    }
    cache_.Used(prefix.image.get());
  }
  if (choice.rows > 0) {
    sequence.Skip(choice.rows, hit.scores.get());
    prefix.scores = FirstOf(hit.scores, hit.matched);
  }
  SetCheckpoints(sequence, slot.index, hits.shared, prefix);
  CountLookup(choice.rows);
}

bool TurnPrefixes::BeginBehind(const Sequence& leader, int32_t leader_slot,
                               Sequence& sequence, const TurnSlot& slot,
                               TurnPrefix& prefix) {
  const int64_t rows = prefix.rows_of_leader;
  if (rows < ShortestOfLeader(leader, leader_slot)) return false;
  runner_->Copy(leader_slot, slot.index);
  CopyExtent(leader_slot, slot.index);
  const std::shared_ptr<const PrefixScores> scores = leader.InputScores();
  sequence.Skip(rows, scores.get());
  SetCheckpoints(sequence, slot.index, rows, prefix);
  CountLookup(rows);
  return true;
}

void TurnPrefixes::CopyExtent(int32_t from, int32_t to) {
  const SlotExtent& source = extents_[from];
  SlotExtent& extent = extents_[to];
  extent.first = source.first;
  extent.written = std::max(extent.written, source.written);
  extent.written_before = std::max(extent.written_before, source.written);
}

void TurnPrefixes::CountLookup(int64_t rows) {
  cache_.NoteLookup(rows > 0);
  metrics_->Update([this, rows](Snapshot& s) {
    ++s.prefix_lookups;
    if (rows > 0) ++s.prefix_hits;
    s.tokens_cached += rows;
    Report(s);
  });
}

// Rows may be overwritten before the turn ends: those of a prompt of at most M
// ids by what is generated behind it, those of a longer one by itself. Images
// are therefore made at three places. The rows of the first M ids serve every
// shorter prefix. A third prompt may continue where two prompts part. The same
// prompt may come again.
void TurnPrefixes::SetCheckpoints(const Sequence& sequence, int32_t slot,
                                  int64_t shared, TurnPrefix& prefix) const {
  const int64_t end =
      std::min(sequence.prompt_end(), MostRowsOfImage(sequence.turn()));
  if (IsDivisible(extents_[slot].written)) return;
  if (IsDivisible(end)) {
    if (end - sequence.planned_end() >= LeastRowsOfImage(end)) {
      prefix.checkpoints.push_back(end);
    }
    return;
  }
  // The row of the last id that both have scores what follows.
  std::vector<int64_t> wanted = {sequence.scores_input() ? shared - 1 : shared,
                                 end};
  if (!info_.identity.zero_start) wanted.push_back(info_.mem_len);
  std::sort(wanted.begin(), wanted.end());
  int64_t last = sequence.planned_end();
  // Where a slot serves the turn, an image may serve the next one.
  if (prefix.image == nullptr && last >= LeastRowsOfImage(last)) {
    prefix.checkpoints.push_back(last);
  }
  for (const int64_t position : wanted) {
    if (position > end || position - last < LeastRowsOfImage(position)) {
      continue;
    }
    prefix.checkpoints.push_back(position);
    last = position;
  }
}

void TurnPrefixes::PartsAt(int64_t rows, const Sequence& leader,
                           TurnPrefix& prefix) const {
  std::vector<int64_t>& left = prefix.checkpoints;
  // Without checkpoints, the slot itself serves every prefix.
  if (left.empty() || leader.planned_end() >= rows) return;
  const auto first = std::lower_bound(left.begin(), left.end(), rows);
  const auto near = [&](int64_t position) {
    return position - rows < LeastRowsOfImage(position);
  };
  const auto last = std::find_if_not(first, left.end(), near);
  left.insert(left.erase(first, last), rows);
}

// The copy takes as long as an eighth of its rows that are fed; with rows
// before position 0 it always has M.
int64_t TurnPrefixes::LeastRowsOfImage(int64_t position) const {
  const int64_t rows = info_.identity.zero_start
                           ? info_.mem_len
                           : std::min(position, info_.mem_len);
  return std::max(least_rows_, rows / kRowsOfACopy);
}

bool TurnPrefixes::IsWorthAnImage(const KeptPrompt& prompt) {
  // One that is on its way does as well.
  for (const Leaving& leaving : leaving_) {
    const int64_t common = CommonIds(leaving.prompt.ids, prompt.ids);
    const bool serves = leaving.prompt.tenant == prompt.tenant &&
                        leaving.prompt.shortest <= common;
    const int64_t rows = std::min(leaving.prompt.rows, common);
    if (serves && prompt.rows - rows < LeastRowsOfImage(prompt.rows)) {
      return false;
    }
  }
  return cache_.IsWorthAnImage(prompt);
}

void TurnPrefixes::Planned(uint64_t id, const Sequence& sequence,
                           const TurnSlot& slot, TurnPrefix& prefix) {
  std::vector<int64_t>& left = prefix.checkpoints;
  while (!left.empty() && sequence.planned_end() >= left.front()) {
    const int64_t rows = left.front();
    left.erase(left.begin());
    // The last row scores the id behind it.
    const auto ids = std::min<size_t>(rows + 1, sequence.fed().size());
    KeptPrompt prompt = PromptOf(sequence, sequence.fed().first(ids), rows);
    const bool scored = sequence.scores_input() && !cache_.misses();
    if (scored || IsWorthAnImage(prompt)) {
      Export(id, sequence.scores_input(), slot.index, std::move(prompt));
    }
  }
}

void TurnPrefixes::InputDone(const Sequence& sequence, const TurnSlot& slot,
                             const TurnPrefix& prefix) {
  const Turn& turn = sequence.turn();
  const bool began = turn.resumed == nullptr &&
                     turn.prefix_tenant.has_value() &&
                     sequence.Started().position == 0;
  if (!on() || !began) return;
  const int64_t rows = sequence.prompt_end();
  const int64_t shortest = Shortest(extents_[slot.index]);
  if (shortest > rows) return;
  KeptPrompt prompt = PromptOf(sequence, sequence.fed().first(rows), rows);
  prompt.shortest = shortest;
  prompt.scores = prefix.scores;
  cache_.KeepSlot(slot.index, std::move(prompt));
}

void TurnPrefixes::Ended(uint64_t id, const Sequence& sequence,
                         const TurnSlot& slot, const TurnPrefix& prefix,
                         bool good) {
  for (auto it = leaving_.begin(); it != leaving_.end();) {
    const bool its = it->turn == id;
    if (its && good) {
      it->turn.reset();
      it->prompt.scores = FirstOf(prefix.scores, std::ssize(it->prompt.ids));
    }
    it = its && !good ? leaving_.erase(it) : it + 1;
  }
  const Turn& turn = sequence.turn();
  if (!on() || slot.index < 0 || turn.kind == TurnKind::kSave) return;
  // Alternatives may have used the slot for rows of other ids.
  const int64_t past = sequence.rows_past_commit();
  const bool cleared = past == std::numeric_limits<int64_t>::max();
  if (good && !cleared) {
    const int64_t rows = std::max<int64_t>(turn.lease.position() - 1, 0);
    SlotExtent& extent = extents_[slot.index];
    extent.written = std::max(extent.written_before, rows + past + guesses_);
  }
  const bool commits =
      turn.kind == TurnKind::kGenerate || turn.kind == TurnKind::kAppend;
  // A turn that leaves its session as it was leaves the session's rows there,
  // too: Entered has seen to it.
  if (good && !commits && turn.lease.position() > 0) return;
  std::optional<KeptPrompt> prompt;
  if (good && !cleared && turn.prefix_tenant.has_value()) {
    prompt = PromptAtEnd(sequence);
  }
  if (prompt.has_value()) {
    prompt->shortest = Shortest(extents_[slot.index]);
  }
  if (!prompt.has_value() || prompt->shortest > prompt->rows) {
    cache_.TakeSlot(slot.index);
    return;
  }
  prompt->scores = prefix.scores;
  // A turn that goes on with a session keeps what is known of the session.
  const std::optional<KeptPrompt> before = cache_.TakeSlot(slot.index);
  if (prompt->scores == nullptr && before.has_value()) {
    prompt->scores =
        FirstOf(before->scores, CommonIds(before->ids, prompt->ids));
  }
  cache_.KeepSlot(slot.index, *std::move(prompt));
  Publish();
}

std::optional<KeptPrompt> TurnPrefixes::PromptAtEnd(const Sequence& sequence) {
  const Turn& turn = sequence.turn();
  const int64_t position = turn.lease.position();
  std::vector<int32_t> of_session;
  if (position > 0 && position <= kMostIdsInSlot) {
    of_session = turn.lease.token_ids().Last(position);
  }
  const absl::Span<const int32_t> ids =
      position > 0 ? absl::Span<const int32_t>(of_session) : turn.input;
  if (ids.empty()) return std::nullopt;
  return PromptOf(sequence, ids, std::ssize(ids) - 1);
}

void TurnPrefixes::DropImage(const TurnPrefix& prefix) {
  if (prefix.image == nullptr) return;
  cache_.DropImage(prefix.image.get());
  Publish();
}

void TurnPrefixes::DropTenant(absl::string_view tenant) {
  cache_.DropTenant(tenant);
  for (auto it = leaving_.begin(); it != leaving_.end();) {
    it = it->prompt.tenant == tenant ? leaving_.erase(it) : it + 1;
  }
  Publish();
}

void TurnPrefixes::Poll(absl::FunctionRef<int64_t(uint64_t id)> collected_end) {
  bool changed = false;
  for (auto it = leaving_.begin(); it != leaving_.end();) {
    const bool whole =
        !it->turn.has_value() ||
        (!it->scored && collected_end(*it->turn) >= it->prompt.rows);
    const bool here = whole && it->image.wait_for(std::chrono::seconds(0)) ==
                                   std::future_status::ready;
    if (!here) {
      ++it;
      continue;
    }
    absl::StatusOr<StateImage> image = it->image.get();
    if (image.ok()) {
      cache_.KeepImage(std::move(it->prompt),
                       std::make_shared<const StateImage>(*std::move(image)));
      changed = true;
    }
    it = leaving_.erase(it);
  }
  if (changed) Publish();
}

KeptPrompt TurnPrefixes::PromptOf(const Sequence& sequence,
                                  absl::Span<const int32_t> ids, int64_t rows) {
  KeptPrompt prompt;
  prompt.tenant = *sequence.turn().prefix_tenant;
  prompt.ids.assign(ids.begin(), ids.end());
  prompt.rows = rows;
  return prompt;
}

void TurnPrefixes::Export(std::optional<uint64_t> turn, bool scored,
                          int32_t slot, KeptPrompt prompt) {
  const int64_t rows = prompt.rows;
  prompt.shortest = IsDivisible(rows) ? 1 : rows;
  leaving_.push_back(
      {turn, scored, std::move(prompt), runner_->Export(slot, rows)});
}

void TurnPrefixes::Report(Snapshot& s) const {
  s.prefix_images = cache_.images();
  s.prefix_bytes = cache_.bytes();
  s.prefix_evictions = cache_.evictions();
}

void TurnPrefixes::Publish() {
  metrics_->Update([this](Snapshot& s) { Report(s); });
}

}  // namespace txl
