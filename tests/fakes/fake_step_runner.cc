#include "tests/fakes/fake_step_runner.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "tests/fakes/plan_violations.h"

namespace txl {
namespace {

// SplitMix64's finaliser (Steele, Lea, Flood 2014).
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

template <typename T>
std::future<T> Ready(T value) {
  std::promise<T> promise;
  promise.set_value(std::move(value));
  return promise.get_future();
}

int32_t Argmax(absl::Span<const float> logprobs,
               absl::Span<const int32_t> banned) {
  int32_t best = -1;
  for (int32_t id = 0; id < static_cast<int32_t>(logprobs.size()); ++id) {
    if (std::find(banned.begin(), banned.end(), id) != banned.end()) continue;
    if (best < 0 || logprobs[id] > logprobs[best]) best = id;
  }
  return best;
}

}  // namespace

FakeStepRunner::FakeStepRunner(FakeStepRunnerOptions options)
    : options_(options), ring_(Geometry(options)), info_(Info(options)) {
  absl::MutexLock lock(&mutex_);
  slots_.resize(options.slots);
  for (Slot& slot : slots_) slot.ring.resize(ring_.capacity());
}

StepId FakeStepRunner::Submit(StepPlan plan) {
  absl::MutexLock lock(&mutex_);
  const StepId id = next_step_++;
  calls_.push_back(absl::StrCat("submit ", id));
  if (static_cast<int32_t>(in_flight_.size()) >= options_.depth) {
    Violation("more steps in flight than depth");
  }
  for (std::string& broken : PlanViolations(plan, info_)) {
    Violation(std::move(broken));
  }
  const auto failure = step_failures_.find(id);
  const bool fails = failure != step_failures_.end();
  StepResult result;
  result.device_seconds =
      options_.device_seconds +
      options_.row_seconds * static_cast<double>(plan.rows.size());
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const StepRow& row = plan.rows[i];
    if (Arrive(row.slot)) calls_.push_back(absl::StrCat("wait ", row.slot));
    const bool guess = i > 0 && plan.rows[i - 1].slot == row.slot &&
                       plan.rows[i - 1].kind == RowKind::kDecode;
    result.rows.push_back(guess ? RunGuess(row, result.rows.back(), fails)
                                : RunRow(row, fails));
  }
  plans_.push_back(std::move(plan));
  in_flight_.push_back(
      {id, fails ? failure->second : absl::OkStatus(), std::move(result)});
  return id;
}

absl::StatusOr<StepResult> FakeStepRunner::Collect(StepId step) {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](FakeStepRunner* self)
           ABSL_NO_THREAD_SAFETY_ANALYSIS { return !self->held_; },
      this));
  if (in_flight_.empty() || in_flight_.front().id != step) {
    Violation(absl::StrCat("step ", step, " collected out of order"));
    return absl::FailedPreconditionError("step collected out of order");
  }
  const InFlight done = std::move(in_flight_.front());
  in_flight_.pop_front();
  if (!done.status.ok()) return done.status;
  return done.result;
}

void FakeStepRunner::Configure(int32_t slot, SlotSampling sampling) {
  absl::MutexLock lock(&mutex_);
  calls_.push_back(absl::StrCat("configure ", slot));
  SlotAt(slot).sampling = std::move(sampling);
  SlotAt(slot).last_sampled.reset();
}

void FakeStepRunner::Clear(int32_t slot) {
  absl::MutexLock lock(&mutex_);
  calls_.push_back(absl::StrCat("clear ", slot));
  Slot& state = SlotAt(slot);
  std::fill(state.ring.begin(), state.ring.end(), Row{});
  state.last_sampled.reset();
  state.underived = 0;
  state.lost = false;
}

void FakeStepRunner::Copy(int32_t from, int32_t to) {
  absl::MutexLock lock(&mutex_);
  calls_.push_back(absl::StrCat("copy ", from, " ", to));
  SlotAt(to).ring = SlotAt(from).ring;
  SlotAt(to).underived = SlotAt(from).underived;
  SlotAt(to).lost = SlotAt(from).lost;
  SlotAt(to).last_sampled.reset();
}

std::future<absl::StatusOr<StateImage>> FakeStepRunner::Export(
    int32_t slot, int64_t position) {
  absl::MutexLock lock(&mutex_);
  calls_.push_back(absl::StrCat("export ", slot, " @", position));
  ExportResult result = MakeImage(slot, position);
  if (!exports_held_) return Ready(std::move(result));
  held_exports_.push_back({{}, std::move(result)});
  return held_exports_.back().promise.get_future();
}

FakeStepRunner::ExportResult FakeStepRunner::MakeImage(int32_t slot,
                                                       int64_t position) {
  if (!next_export_.ok()) {
    return std::exchange(next_export_, absl::OkStatus());
  }
  const Slot& state = SlotAt(slot);
  StateImage image;
  image.identity = info_.identity;
  image.position = position;
  image.rows = std::min(options_.mem_len, position);
  image.data.resize(image.rows * sizeof(int32_t));
  for (int64_t i = 0; i < image.rows; ++i) {
    const int64_t t = position - image.rows + i;
    const Row& row = state.ring[ring_.IndexOf(t)];
    if (row.position != t && !state.lost) {
      Violation(absl::StrCat("export of slot ", slot, " at ", position,
                             ": row of position ", t, " is not there"));
    }
    std::memcpy(image.data.data() + i * sizeof(int32_t), &row.id,
                sizeof(int32_t));
  }
  image.Seal();
  return image;
}

std::future<absl::Status> FakeStepRunner::Import(
    int32_t slot, std::shared_ptr<const StateImage> image) {
  absl::MutexLock lock(&mutex_);
  calls_.push_back(absl::StrCat("import ", slot, " @", image->position));
  Arrive(slot);  // what came before it
  Slot& state = SlotAt(slot);
  std::fill(state.ring.begin(), state.ring.end(), Row{});
  state.last_sampled.reset();
  absl::Status status = std::exchange(next_import_, absl::OkStatus());
  if (status.ok()) status = CheckStateImage(*image, info_.identity);
  state.underived = options_.derives ? image->rows : 0;
  if ((state.lost = !status.ok())) return Ready(std::move(status));
  for (int64_t i = 0; i < image->rows; ++i) {
    const int64_t t = image->position - image->rows + i;
    Row& row = state.ring[ring_.IndexOf(t)];
    row.position = t;
    std::memcpy(&row.id, image->data.data() + i * sizeof(int32_t),
                sizeof(int32_t));
  }
  if (!imports_held_) return Ready(absl::OkStatus());
  return held_imports_[slot].get_future();
}

std::vector<float> FakeStepRunner::LogProbs(
    absl::Span<const int32_t> ids) const {
  const int64_t newest = static_cast<int64_t>(ids.size()) - 1;
  const std::vector<int32_t> ticks = TicksBefore(options_.beats, ids);
  std::vector<std::pair<int64_t, int32_t>> seen;
  for (int64_t t = ring_.OldestVisible(newest); t <= newest; ++t) {
    seen.emplace_back(t, Stored(ids[t], ticks[t]));
  }
  return Distribution(seen);
}

int32_t FakeStepRunner::NextToken(absl::Span<const int32_t> ids,
                                  absl::Span<const int32_t> banned) const {
  return Argmax(LogProbs(ids), banned);
}

std::vector<int32_t> FakeStepRunner::Continue(std::vector<int32_t> ids,
                                              int count) const {
  const size_t begin = ids.size();
  for (int i = 0; i < count; ++i) ids.push_back(NextToken(ids));
  return {ids.begin() + begin, ids.end()};
}

void FakeStepRunner::FailStep(int64_t number, absl::Status status) {
  absl::MutexLock lock(&mutex_);
  step_failures_[number] = std::move(status);
}

void FakeStepRunner::FailRow(int32_t slot, int64_t position) {
  absl::MutexLock lock(&mutex_);
  row_failures_.emplace(slot, position);
}

void FakeStepRunner::FailNextExport(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  next_export_ = std::move(status);
}

void FakeStepRunner::FailNextImport(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  next_import_ = std::move(status);
}

void FakeStepRunner::Hold() {
  absl::MutexLock lock(&mutex_);
  held_ = true;
}

void FakeStepRunner::Release() {
  absl::MutexLock lock(&mutex_);
  held_ = false;
}

void FakeStepRunner::HoldExports() {
  absl::MutexLock lock(&mutex_);
  exports_held_ = true;
}

void FakeStepRunner::ReleaseExports() {
  absl::MutexLock lock(&mutex_);
  exports_held_ = false;
  for (HeldExport& held : held_exports_) {
    held.promise.set_value(std::move(held.result));
  }
  held_exports_.clear();
}

void FakeStepRunner::HoldImports() {
  absl::MutexLock lock(&mutex_);
  imports_held_ = true;
}

void FakeStepRunner::ReleaseImports() {
  absl::MutexLock lock(&mutex_);
  imports_held_ = false;
  while (!held_imports_.empty()) Arrive(held_imports_.begin()->first);
}

bool FakeStepRunner::Arrive(int32_t slot) {
  auto held = held_imports_.extract(slot);
  if (held.empty()) return false;
  held.mapped().set_value(absl::OkStatus());
  return true;
}

std::vector<StepPlan> FakeStepRunner::plans() const {
  absl::MutexLock lock(&mutex_);
  return plans_;
}

std::vector<std::string> FakeStepRunner::calls() const {
  absl::MutexLock lock(&mutex_);
  return calls_;
}

std::vector<std::string> FakeStepRunner::violations() const {
  absl::MutexLock lock(&mutex_);
  return violations_;
}

SlotSampling FakeStepRunner::sampling(int32_t slot) const {
  absl::MutexLock lock(&mutex_);
  return slots_.at(slot).sampling;
}

int32_t FakeStepRunner::Stored(int32_t id, int32_t ticks) const {
  if (!options_.beats.has_value()) return id;
  const auto vocabulary = static_cast<int32_t>(options_.vocab_size);
  return id + vocabulary * TicksOf(id, *options_.beats, ticks);
}

std::vector<float> FakeStepRunner::Distribution(
    absl::Span<const std::pair<int64_t, int32_t>> seen) const {
  uint64_t hash = 0;
  for (const auto& [position, id] : seen) {
    const int64_t place = options_.by_position ? position : 0;
    hash = Mix(hash ^ Mix(static_cast<uint64_t>(place)) ^
               static_cast<uint64_t>(id));
  }
  // Distinct values, so that the most probable id never depends on ties.
  std::vector<float> logprobs(options_.vocab_size);
  for (int64_t id = 0; id < options_.vocab_size; ++id) {
    logprobs[id] = -0.5f - static_cast<float>(Mix(hash + id) % 4096) / 512 -
                   static_cast<float>(id) / 1048576;
  }
  return logprobs;
}

RowResult FakeStepRunner::RunRow(const StepRow& row, bool step_fails) {
  Slot& slot = SlotAt(row.slot);
  if (row.kind == RowKind::kDerive) {
    if (--slot.underived < 0) Violation("more kDerive rows than stored ones");
    return {};
  }
  if (slot.underived > 0) Violation("a row that others wait for stands first");
  RowResult result;
  const bool row_fails = row_failures_.erase({row.slot, row.position}) > 0;
  const std::optional<int32_t> input =
      row.token_id == kLastSampled ? slot.last_sampled : row.token_id;
  if (row.kind == RowKind::kDecode) slot.last_sampled.reset();
  if (!input.has_value()) {
    result.status = absl::InternalError("the token to feed is unknown");
    return result;
  }
  if (*input < 0 || *input >= options_.vocab_size || row.position < 0) {
    Violation(absl::StrCat("token ", *input, " at position ", row.position));
  }
  slot.ring[ring_.IndexOf(row.position)] = {row.position,
                                            Stored(*input, row.ticks)};
  if (row_fails) {
    result.status = absl::InternalError("the row's numbers are not finite");
    return result;
  }
  if (step_fails) return result;
  if (row.kind == RowKind::kDecode || row.kind == RowKind::kScore) {
    ReportRow(row, slot, result);
  }
  return result;
}

RowResult FakeStepRunner::RunGuess(const StepRow& row, const RowResult& before,
                                   bool step_fails) {
  if (before.rejected || before.token_id != row.token_id) {
    // Its row is there nevertheless, for whoever would look at it.
    SlotAt(row.slot).ring[ring_.IndexOf(row.position)] = {
        row.position, Stored(row.token_id, row.ticks)};
    RowResult result;
    result.rejected = before.status.ok();
    result.status = before.status;
    return result;
  }
  return RunRow(row, step_fails);
}

void FakeStepRunner::ReportRow(const StepRow& row, Slot& slot,
                               RowResult& result) {
  std::vector<std::pair<int64_t, int32_t>> seen;
  for (int64_t t = ring_.OldestVisible(row.position); t <= row.position; ++t) {
    const Row& stored = slot.ring[ring_.IndexOf(t)];
    if (stored.position != t && !slot.lost) {
      Violation(absl::StrCat("slot ", row.slot, " at ", row.position,
                             ": row of position ", t, " is not there"));
    }
    seen.emplace_back(t, stored.id);
  }
  const std::vector<float> logprobs = Distribution(seen);
  if (row.kind == RowKind::kScore) {
    result.token_id = row.score_target;
  } else {
    const bool early = row.position + 1 < slot.sampling.min_position;
    std::vector<int32_t> banned =
        early ? slot.sampling.banned_ids : std::vector<int32_t>();
    const auto& allowed = slot.sampling.params.allowed_token_ids;
    for (int32_t id = 0; id < options_.vocab_size && !allowed.empty(); ++id) {
      if (std::count(allowed.begin(), allowed.end(), id) == 0) {
        banned.push_back(id);
      }
    }
    if (slot.sampling.params.follow_kinds) BanKinds(row, slot, banned);
    result.token_id = Argmax(logprobs, banned);
    slot.last_sampled = result.token_id;
    slot.sampling.recent_ids.push_back(result.token_id);
  }
  result.logprob = logprobs.at(result.token_id);
  for (int32_t id = 0; id < options_.vocab_size; ++id) {
    result.top_logprobs.push_back({id, logprobs[id]});
  }
  std::stable_sort(result.top_logprobs.begin(), result.top_logprobs.end(),
                   [](const TokenLogprob& a, const TokenLogprob& b) {
                     return a.logprob > b.logprob;
                   });
  result.top_logprobs.resize(
      std::clamp<int64_t>(row.top_logprobs, 0, options_.vocab_size));
  for (int64_t i = 0; i < row.reported_ids(); ++i) {
    const int32_t id = (*row.logprob_ids)[i];
    result.top_logprobs.push_back({id, logprobs.at(id)});
  }
}

void FakeStepRunner::BanKinds(const StepRow& row, const Slot& slot,
                              std::vector<int32_t>& banned) {
  const std::vector<int32_t>& recent = slot.sampling.recent_ids;
  if (options_.kinds == nullptr || recent.empty() ||
      Stored(recent.back(), row.ticks) !=
          slot.ring[ring_.IndexOf(row.position)].id) {
    Violation(absl::StrCat("slot ", row.slot, " at ", row.position,
                           ": the last recent id is not what the row feeds"));
    return;
  }
  std::vector<double> allowed(options_.vocab_size);
  options_.kinds->Forbid(recent.back(), absl::MakeSpan(allowed));
  for (int32_t id = 0; id < options_.vocab_size; ++id) {
    if (allowed[id] != 0) banned.push_back(id);
  }
}

FakeStepRunner::Slot& FakeStepRunner::SlotAt(int32_t slot) {
  if (slot < 0 || slot >= options_.slots) {
    Violation(absl::StrCat("slot ", slot, " does not exist"));
    return slots_.front();
  }
  return slots_[slot];
}

void FakeStepRunner::Violation(std::string what) {
  violations_.push_back(std::move(what));
}

}  // namespace txl
