#include "tests/bench/front/paced_runner.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace txl {
namespace {

constexpr int64_t kSpareRows = 64;  // the real runner's default
constexpr int64_t kRowBytes = sizeof(float);

RunnerInfo Info(const PacedRunnerOptions& options) {
  RunnerInfo info;
  info.slots = options.max_rows;
  info.spare_rows = kSpareRows;
  info.max_rows = options.max_rows;
  info.depth = options.depth;
  info.bytes_per_slot = (options.mem_len + kSpareRows) * kRowBytes;
  info.vocab_size = options.vocab_size;
  info.mem_len = options.mem_len;
  info.window = options.mem_len + 1;
  info.rebuild_ids = options.mem_len + 1;
  info.identity.fingerprint = "paced";
  info.identity.window = info.window;
  info.identity.mem_len = options.mem_len;
  info.identity.d_model = 1;
  info.identity.n_layer = 1;
  info.identity.row_dtype = "f32";
  info.identity.kernel = "paced";
  info.device = "paced";
  info.form = "absorbed";
  info.weight_dtype = "f32";
  return info;
}

template <typename T>
std::future<T> Ready(T value) {
  std::promise<T> promise;
  promise.set_value(std::move(value));
  return promise.get_future();
}

}  // namespace

int32_t PacedToken(int32_t slot, int64_t position, int64_t vocab_size) {
  // SplitMix64's finaliser (Steele, Lea, Flood 2014).
  uint64_t x = (static_cast<uint64_t>(slot) << 40) ^
               (static_cast<uint64_t>(position) + 0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  x ^= x >> 31;
  return static_cast<int32_t>(x % static_cast<uint64_t>(vocab_size));
}

PacedRunner::PacedRunner(const PacedRunnerOptions& options, Clock* clock,
                         std::function<void(absl::Duration)> sleep)
    : info_(Info(options)),
      rows_per_second_(options.rows_per_second),
      clock_(clock),
      sleep_(std::move(sleep)),
      schedule_(options.rows_per_second) {}

StepId PacedRunner::Submit(StepPlan plan) {
  const StepId id = next_step_++;
  absl::MutexLock lock(&mutex_);
  const absl::Duration end = schedule_.Add(
      clock_->Monotonic(), static_cast<int64_t>(plan.rows.size()));
  in_flight_.push_back({id, end, std::move(plan)});
  return id;
}

absl::StatusOr<StepResult> PacedRunner::Collect(StepId step) {
  if (in_flight_.empty() || in_flight_.front().id != step) {
    return absl::FailedPreconditionError(
        absl::StrCat("step ", step, " is not the next one in flight"));
  }
  const InFlight done = std::move(in_flight_.front());
  in_flight_.pop_front();
  const absl::Duration left = done.end - clock_->Monotonic();
  if (left > absl::ZeroDuration()) sleep_(left);
  return ResultOf(done.plan);
}

StepResult PacedRunner::ResultOf(const StepPlan& plan) const {
  StepResult result;
  result.device_seconds =
      static_cast<double>(plan.rows.size()) / rows_per_second_;
  result.rows.resize(plan.rows.size());
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const StepRow& row = plan.rows[i];
    RowResult& out = result.rows[i];
    out.logprob = -1;
    if (row.kind == RowKind::kScore) out.token_id = row.score_target;
    if (row.kind == RowKind::kDecode) {
      out.token_id = PacedToken(row.slot, row.position, info_.vocab_size);
    }
  }
  return result;
}

std::future<absl::StatusOr<StateImage>> PacedRunner::Export(int32_t,
                                                            int64_t position) {
  StateImage image;
  image.identity = info_.identity;
  image.position = position;
  image.rows = std::min(info_.mem_len, position);
  image.data.resize(static_cast<size_t>(image.rows * kRowBytes));
  image.Seal();
  return Ready<absl::StatusOr<StateImage>>(std::move(image));
}

std::future<absl::Status> PacedRunner::Import(
    int32_t, std::shared_ptr<const StateImage> image) {
  return Ready(CheckStateImage(*image, info_.identity));
}

DeviceTotals PacedRunner::totals() const {
  absl::MutexLock lock(&mutex_);
  return schedule_.totals();
}

}  // namespace txl
