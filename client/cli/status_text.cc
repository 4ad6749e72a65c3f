#include "client/cli/status_text.h"

#include <map>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace txl::cli {
namespace {

// "OK 12, CANCELLED 1"
std::string FormatCounts(const std::map<std::string, int64_t>& counts) {
  if (counts.empty()) return "none";
  return absl::StrJoin(counts, ", ", absl::PairFormatter(" "));
}

// A line about the clusters of an adaptive softmax; none without one.
std::string FormatSoftmax(const v1::GetServerStatusResponse& status) {
  double skipped = 0;
  double all = 0;
  for (const v1::SoftmaxTail& tail : status.softmax_tails()) {
    skipped += static_cast<double>(tail.skipped());
    all += static_cast<double>(tail.computed() + tail.skipped());
  }
  if (all == 0) return "";
  return absl::StrFormat("softmax      %.1f%% of clusters skipped\n",
                         100 * skipped / all);
}

// A line about tokens that were guessed ahead; none without any.
std::string FormatGuesses(const v1::GetServerStatusResponse& status) {
  if (status.tokens_guessed() == 0) return "";
  return absl::StrFormat("guesses      %d, %d accepted, %d steps saved\n",
                         status.tokens_guessed(), status.guesses_accepted(),
                         status.steps_saved());
}

// A line about prompts that began alike; none where none was looked for.
std::string FormatPrefixes(const v1::GetServerStatusResponse& status) {
  if (status.prefix_lookups() == 0) return "";
  return absl::StrFormat(
      "prefixes     %d of %d prompts found, %d tokens cached; %d images, %d "
      "bytes\n",
      status.prefix_hits(), status.prefix_lookups(), status.tokens_cached(),
      status.prefix_images(), status.prefix_bytes());
}

// A line about the store of sessions; none without one.
std::string FormatStore(const v1::GetServerStatusResponse& status) {
  if (!status.has_store()) return "";
  const v1::StoreStatus& store = status.store();
  return absl::StrFormat(
      "store        %s, durable by %s; %d sessions, %d bytes, images %d "
      "bytes\n",
      store.state(), store.durability(), store.sessions(),
      store.database_bytes(), store.image_bytes());
}

// A line about the self-test at load; none of a server that says nothing of it.
std::string FormatSelfTest(const v1::GetServerStatusResponse& status) {
  if (!status.has_self_test()) return "";
  const v1::SelfTest& test = status.self_test();
  if (test.result() == "not_run") return "self-test    not run\n";
  if (test.objection().empty()) {
    return absl::StrFormat("self-test    %s in %.2f s\n", test.result(),
                           test.seconds());
  }
  return absl::StrFormat("self-test    %s after %.2f s: %s refused, %s\n",
                         test.result(), test.seconds(), test.step(),
                         test.objection());
}

}  // namespace

std::string StateName(v1::ServerState state) {
  switch (state) {
    case v1::SERVER_STATE_STARTING:
      return "starting";
    case v1::SERVER_STATE_READY:
      return "ready";
    case v1::SERVER_STATE_DRAINING:
      return "draining";
    default:
      return "unknown";
  }
}

std::string FormatModel(const v1::GetModelResponse& model) {
  return absl::StrFormat(
      "model        %s (%s)\n"
      "vocabulary   %d %s\n"
      "shape        %d layers, %d heads of %d, width %d\n"
      "memory       %d positions, %d bytes per session\n"
      "runs on      %s, %s, %s, %s\n"
      "version      %s, %s\n",
      model.name(), model.fingerprint().substr(0, 12), model.vocabulary_size(),
      model.vocabulary_kind().empty() ? "token ids" : model.vocabulary_kind(),
      model.layers(), model.heads(), model.head_width(), model.model_width(),
      model.memory_length(), model.bytes_per_session(), model.device(),
      model.kernel(), model.form(), model.weight_dtype(),
      model.server_version(), model.api_version());
}

std::string FormatStatus(const v1::GetServerStatusResponse& status) {
  const double mean_batch =
      status.steps_with_decode() == 0
          ? 0
          : static_cast<double>(status.rows_decode()) /
                static_cast<double>(status.steps_with_decode());
  const std::map<std::string, int64_t> finished(status.turns_finished().begin(),
                                                status.turns_finished().end());
  return absl::StrFormat(
      "state        %s, up %d s\n"
      "sessions     %d busy, %d idle\n"
      "slots        %d of %d\n"
      "queue        %d calls, %d tokens\n"
      "steps        %d, mean %.1f decode rows\n"
      "turns        %d started, %d active; finished: %s\n"
      "tokens       %d sampled, %d delivered, %d discarded\n"
      "streams      %d tokens unread\n"
      "%s%s%s%s%s",
      StateName(status.state()), status.uptime().seconds(),
      status.sessions_busy(), status.sessions_idle(), status.slots_used(),
      status.slots_total(), status.queued_calls(), status.queued_tokens(),
      status.steps(), mean_batch, status.turns_started(), status.turns_active(),
      FormatCounts(finished), status.tokens_sampled(),
      status.tokens_delivered(), status.tokens_discarded(),
      status.stream_queue_tokens(), FormatGuesses(status),
      FormatSoftmax(status), FormatPrefixes(status), FormatStore(status),
      FormatSelfTest(status));
}

std::string FormatWatchLine(const v1::GetServerStatusResponse& status,
                            const StatusRates& rates) {
  return absl::StrFormat(
      "%s, up %d s; sessions %d busy, %d idle; slots %d of %d; "
      "queue %d calls; last %.1f s: %.1f tokens/s, %.1f steps/s, "
      "%.1f rows/step, turns ended: %s\n",
      StateName(status.state()), status.uptime().seconds(),
      status.sessions_busy(), status.sessions_idle(), status.slots_used(),
      status.slots_total(), status.queued_calls(), rates.seconds,
      rates.tokens_per_second, rates.steps_per_second, rates.rows_per_step,
      FormatCounts(rates.turns_ended));
}

std::string FormatWatchScreen(const v1::GetServerStatusResponse& status,
                              const StatusRates& rates) {
  return absl::StrFormat(
      "state        %s, up %d s\n"
      "sessions     %d busy, %d idle\n"
      "slots        %d of %d\n"
      "queue        %d calls, %d tokens\n"
      "turns        %d active, %d parked\n"
      "streams      %d tokens unread\n"
      "\n"
      "in the last  %.1f s\n"
      "tokens/s     %.1f\n"
      "steps/s      %.1f\n"
      "rows/step    %.1f\n"
      "turns ended  %s\n",
      StateName(status.state()), status.uptime().seconds(),
      status.sessions_busy(), status.sessions_idle(), status.slots_used(),
      status.slots_total(), status.queued_calls(), status.queued_tokens(),
      status.turns_active(), status.turns_parked(),
      status.stream_queue_tokens(), rates.seconds, rates.tokens_per_second,
      rates.steps_per_second, rates.rows_per_step,
      FormatCounts(rates.turns_ended));
}

namespace {

double Uptime(const v1::GetServerStatusResponse& status) {
  return static_cast<double>(status.uptime().seconds()) +
         1e-9 * static_cast<double>(status.uptime().nanos());
}

int64_t Rows(const v1::GetServerStatusResponse& status) {
  return status.rows_decode() + status.rows_prefill() + status.rows_score() +
         status.rows_rebuild();
}

double Ratio(int64_t count, double of) {
  return of > 0 ? static_cast<double>(count) / of : 0;
}

}  // namespace

StatusRates RatesBetween(const v1::GetServerStatusResponse& before,
                         const v1::GetServerStatusResponse& after) {
  if (Uptime(after) < Uptime(before)) {
    return RatesBetween(v1::GetServerStatusResponse(), after);
  }
  const int64_t steps = after.steps() - before.steps();
  StatusRates rates;
  rates.seconds = Uptime(after) - Uptime(before);
  rates.tokens_per_second = Ratio(
      after.tokens_delivered() - before.tokens_delivered(), rates.seconds);
  rates.steps_per_second = Ratio(steps, rates.seconds);
  rates.rows_per_step =
      Ratio(Rows(after) - Rows(before), static_cast<double>(steps));
  for (const auto& [status, count] : after.turns_finished()) {
    const auto it = before.turns_finished().find(status);
    const int64_t ended =
        count - (it == before.turns_finished().end() ? 0 : it->second);
    if (ended > 0) rates.turns_ended[status] = ended;
  }
  return rates;
}

}  // namespace txl::cli
