#include "tests/server/metrics/conservation.h"

#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace txl {
namespace {

class Laws {
 public:
  void Equal(absl::string_view law, int64_t left, int64_t right) {
    if (left != right) Report(law, left, right);
  }
  void AtMost(absl::string_view law, int64_t left, int64_t right) {
    if (left > right) Report(law, left, right);
  }
  void NotNegative(absl::string_view name, double value) {
    if (value < 0) broken_.push_back(absl::StrCat(name, " >= 0: ", value));
  }
  std::vector<std::string> Take() { return std::move(broken_); }

 private:
  void Report(absl::string_view law, int64_t left, int64_t right) {
    broken_.push_back(absl::StrCat(law, ": ", left, " and ", right));
  }
  std::vector<std::string> broken_;
};

// What tenants have had is what everybody has had.
void CheckTenants(const Snapshot& s, Laws& laws) {
  if (s.tenants.empty()) return;
  TenantCounts all;
  for (const TenantCounts& tenant : s.tenants) {
    all.turns_started += tenant.turns_started;
    all.turns_active += tenant.turns_active;
    all.tokens_prompt += tenant.tokens_prompt;
    all.tokens_delivered += tenant.tokens_delivered;
    laws.NotNegative(absl::StrCat("turns_active of ", tenant.tenant),
                     tenant.turns_active);
  }
  laws.Equal("turns_started = sum over tenants", s.turns_started,
             all.turns_started);
  laws.Equal("turns_active = sum over tenants", s.turns_active,
             all.turns_active);
  laws.Equal("tokens_prompt = sum over tenants", s.tokens_prompt,
             all.tokens_prompt);
  laws.Equal("tokens_delivered = sum over tenants", s.tokens_delivered,
             all.tokens_delivered);
}

void CheckSigns(const Snapshot& s, Laws& laws) {
  laws.NotNegative("turns_started", s.turns_started);
  laws.NotNegative("turns_active", s.turns_active);
  for (const auto& [name, count] : s.turns_finished) {
    laws.NotNegative(absl::StrCat("turns_finished ", name), count);
  }
  laws.NotNegative("queued_calls", s.queued_calls);
  laws.NotNegative("queued_tokens", s.queued_tokens);
  for (const auto& [kind, count] : s.turns_ended) {
    laws.NotNegative(absl::StrCat("turns_ended ", kind.second), count);
  }
  laws.NotNegative("steps", s.steps);
  laws.NotNegative("steps_failed", s.steps_failed);
  laws.NotNegative("rows_run", s.rows_run);
  laws.NotNegative("rows_decode", s.rows_decode);
  laws.NotNegative("rows_prefill", s.rows_prefill);
  laws.NotNegative("rows_score", s.rows_score);
  laws.NotNegative("rows_rebuild", s.rows_rebuild);
  laws.NotNegative("tokens_fed", s.tokens_fed);
  laws.NotNegative("rows_discarded", s.rows_discarded);
  laws.NotNegative("steps_with_decode", s.steps_with_decode);
  laws.NotNegative("steps_with_prompt_and_decode",
                   s.steps_with_prompt_and_decode);
  laws.NotNegative("tokens_sampled", s.tokens_sampled);
  laws.NotNegative("tokens_delivered", s.tokens_delivered);
  laws.NotNegative("guesses_accepted", s.guesses_accepted);
  laws.NotNegative("wrong guesses", s.tokens_guessed - s.guesses_accepted);
  laws.NotNegative("guesses_accepted that saved no step",
                   s.guesses_accepted - s.steps_saved);
  laws.NotNegative("tokens_discarded", s.tokens_discarded);
  laws.NotNegative("tokens_prompt", s.tokens_prompt);
  laws.NotNegative("stream_queue_tokens", s.stream_queue_tokens);
  laws.NotNegative("slots_total", s.slots_total);
  laws.NotNegative("slots_used", s.slots_used);
  laws.NotNegative("sessions_moved_out", s.sessions_moved_out);
  laws.NotNegative("sessions_moved_in", s.sessions_moved_in);
  laws.NotNegative("prefix_hits", s.prefix_hits);
  laws.NotNegative("prefix_images", s.prefix_images);
  laws.NotNegative("prefix_bytes", s.prefix_bytes);
  laws.NotNegative("prefix_evictions", s.prefix_evictions);
  laws.NotNegative("turns_parked", s.turns_parked);
  laws.NotNegative("turns_parked_out", s.turns_parked_out);
  laws.NotNegative("parked_moves", s.parked_moves);
  laws.NotNegative("turns_displaced", s.turns_displaced);
  laws.NotNegative("step_seconds", s.step_seconds);
}

// Every distribution has all clusters.
void CheckTails(const Snapshot& s, Laws& laws) {
  for (const SoftmaxTail& tail : s.softmax_tails) {
    const SoftmaxTail& first = s.softmax_tails.front();
    laws.Equal("softmax_tails of every cluster", first.computed + first.skipped,
               tail.computed + tail.skipped);
    laws.NotNegative("softmax_tails computed", tail.computed);
    laws.NotNegative("softmax_tails skipped", tail.skipped);
  }
}

// Every event that has a distribution is in it once.
void CheckDistributions(const Snapshot& s, int64_t finished, Laws& laws) {
  const Distributions& d = s.distributions;
  laws.Equal("turns_started = queued_calls + queue_seconds", s.turns_started,
             s.queued_calls + d.queue_seconds.count());
  laws.Equal("turns_finished = request_seconds", finished,
             d.request_seconds.count());
  laws.Equal("turns_finished = prompt_tokens", finished,
             d.prompt_tokens.count());
  laws.AtMost("generated_tokens <= turns_finished", d.generated_tokens.count(),
              finished);
  laws.Equal("tokens_delivered = first_token_seconds + inter_token_seconds",
             s.tokens_delivered,
             d.first_token_seconds.count() + d.inter_token_seconds.count());
  int64_t timed = 0;
  for (const Histogram& kind : d.step_seconds) timed += kind.count();
  laws.Equal("steps = steps_failed + step_seconds", s.steps,
             s.steps_failed + timed);
  laws.Equal("steps = step_batch_size", s.steps, d.step_batch_size.count());
  laws.Equal("steps = step_tokens", s.steps, d.step_tokens.count());
}

// turns_ended says more about the turns of turns_finished.
void CheckReasons(const Snapshot& s, Laws& laws) {
  std::map<std::string, int64_t> by_status;
  for (const auto& [kind, count] : s.turns_ended) {
    by_status[kind.first] += count;
  }
  for (const auto& [status, count] : s.turns_finished) {
    laws.Equal(absl::StrCat("turns_finished = turns_ended ", status), count,
               by_status[status]);
    by_status.erase(status);
  }
  for (const auto& [status, count] : by_status) {
    laws.Equal(absl::StrCat("turns_finished = turns_ended ", status), 0, count);
  }
}

}  // namespace

std::vector<std::string> BrokenLaws(const Snapshot& s) {
  Laws laws;
  int64_t finished = 0;
  for (const auto& [name, count] : s.turns_finished) finished += count;
  laws.Equal("turns_started = turns_finished + turns_active", s.turns_started,
             finished + s.turns_active);
  laws.Equal("rows_run = decode + prefill + score + rebuild", s.rows_run,
             s.rows_decode + s.rows_prefill + s.rows_score + s.rows_rebuild);
  laws.Equal("rows_run = tokens_fed + rows_discarded", s.rows_run,
             s.tokens_fed + s.rows_discarded);
  laws.Equal("tokens_sampled = delivered + discarded", s.tokens_sampled,
             s.tokens_delivered + s.tokens_discarded);
  laws.AtMost("slots_used <= slots_total", s.slots_used, s.slots_total);
  laws.AtMost("turns_parked_out <= turns_parked", s.turns_parked_out,
              s.turns_parked);
  laws.AtMost("steps_with_decode <= steps", s.steps_with_decode, s.steps);
  laws.AtMost("steps_with_prompt_and_decode <= steps_with_decode",
              s.steps_with_prompt_and_decode, s.steps_with_decode);
  laws.AtMost("prefix_hits <= prefix_lookups", s.prefix_hits, s.prefix_lookups);
  laws.AtMost("prefix_hits <= tokens_cached", s.prefix_hits, s.tokens_cached);
  CheckDistributions(s, finished, laws);
  CheckTenants(s, laws);
  CheckReasons(s, laws);
  CheckTails(s, laws);
  CheckSigns(s, laws);
  return laws.Take();
}

std::vector<std::string> BrokenLaws(const SessionCounts& sessions) {
  Laws laws;
  laws.Equal(
      "created + loaded = ended + stored_away + idle + busy",
      sessions.created + sessions.loaded,
      sessions.ended + sessions.stored_away + sessions.idle + sessions.busy);
  laws.NotNegative("idle", sessions.idle);
  laws.NotNegative("busy", sessions.busy);
  laws.NotNegative("created", sessions.created);
  laws.NotNegative("ended", sessions.ended);
  laws.NotNegative("loaded", sessions.loaded);
  laws.NotNegative("stored_away", sessions.stored_away);
  return laws.Take();
}

}  // namespace txl
