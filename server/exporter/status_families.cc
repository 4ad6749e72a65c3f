#include "server/exporter/status_families.h"

#include "server/exporter/family_list.h"

namespace txl {
namespace {

double Value(int64_t count) { return static_cast<double>(count); }

void AddServer(const ExporterFacts& facts, const ServerStatus& status,
               FamilyList& out) {
  out.Gauge("txl_build_info", "Always 1; what runs")
      .Sample(1, {{"version", facts.version}});
  out.Gauge("txl_model_info", "Always 1; what is served and on what")
      .Sample(1, {{"name", facts.model},
                  {"fingerprint", facts.fingerprint},
                  {"device", facts.device},
                  {"kernel", facts.kernel},
                  {"form", facts.form},
                  {"weight_dtype", facts.weight_dtype},
                  {"memory_dtype", facts.memory_dtype}});
  FamilyRef state = out.Gauge("txl_server_state", "1 for the server's state");
  for (const auto& [phase, name] :
       {std::pair(ServerPhase::kStarting, "starting"),
        std::pair(ServerPhase::kReady, "ready"),
        std::pair(ServerPhase::kDraining, "draining")}) {
    state.Sample(status.phase == phase ? 1 : 0, {{"state", name}});
  }
  out.Gauge("txl_server_uptime_seconds", "Time since the start of the server")
      .Sample(absl::ToDoubleSeconds(status.uptime));
  out.Gauge("txl_last_step_age_seconds",
            "Time since the last step ended while work waits, else 0")
      .Sample(absl::ToDoubleSeconds(status.stall));
}

void AddRequests(const Snapshot& s, FamilyList& out) {
  out.Gauge("txl_requests_running", "Turns that have left the queue")
      .Sample(Value(s.turns_active - s.queued_calls));
  out.Gauge("txl_requests_waiting", "Turns in the queue")
      .Sample(Value(s.queued_calls));
  out.Gauge("txl_requests_parked", "Running turns whose client does not read")
      .Sample(Value(s.turns_parked));
  out.Gauge("txl_queue_tokens", "Prompt tokens of the turns in the queue")
      .Sample(Value(s.queued_tokens));
  out.Counter("txl_requests_started_total", "Turns taken into the queue")
      .Sample(Value(s.turns_started));
  FamilyRef ended = out.Counter("txl_requests_total", "Turns that have ended");
  for (const auto& [code, count] : s.turns_finished) {
    ended.Sample(Value(count), {{"outcome", code}});
  }
}

void AddSteps(const Snapshot& s, FamilyList& out) {
  out.Counter("txl_steps_total", "Steps on the device").Sample(Value(s.steps));
  out.Counter("txl_steps_with_decode_total", "Steps in which a row sampled")
      .Sample(Value(s.steps_with_decode));
  out.Counter("txl_rows_total", "Tokens through the layers, by kind")
      .Sample(Value(s.rows_decode), {{"kind", "decode"}})
      .Sample(Value(s.rows_prefill), {{"kind", "prefill"}})
      .Sample(Value(s.rows_score), {{"kind", "score"}})
      .Sample(Value(s.rows_rebuild), {{"kind", "rebuild"}});
  out.Counter("txl_rows_kept_total", "Rows that their turn kept")
      .Sample(Value(s.tokens_fed));
  out.Counter("txl_rows_discarded_total", "Rows that nobody kept")
      .Sample(Value(s.rows_discarded));
}

void AddTokens(const Snapshot& s, FamilyList& out) {
  out.Counter("txl_tokens_sampled_total", "Tokens sampled")
      .Sample(Value(s.tokens_sampled));
  out.Counter("txl_tokens_total", "Tokens by what became of them")
      .Sample(Value(s.tokens_delivered), {{"kind", "generated"}})
      .Sample(Value(s.rows_rebuild), {{"kind", "recomputed"}})
      .Sample(Value(s.tokens_discarded), {{"kind", "wasted"}});
}

void AddSessions(const ExporterFacts& facts, const ServerStatus& status,
                 FamilyList& out) {
  const Snapshot& s = status.snapshot;
  out.Gauge("txl_session_slots", "Slots of segment memory on the device")
      .Sample(Value(s.slots_total));
  out.Gauge("txl_session_slots_used", "Slots that hold a session")
      .Sample(Value(s.slots_used));
  out.Gauge("txl_session_state_bytes", "Segment memory of sessions, by place")
      .Sample(Value(s.slots_used * facts.bytes_per_slot), {{"tier", "device"}})
      .Sample(Value(status.sessions.image_bytes), {{"tier", "host"}});
}

}  // namespace

std::vector<prometheus::MetricFamily> StatusFamilies(
    const ExporterFacts& facts, const ServerStatus& status) {
  FamilyList out;
  AddServer(facts, status, out);
  AddRequests(status.snapshot, out);
  AddSteps(status.snapshot, out);
  AddTokens(status.snapshot, out);
  AddSessions(facts, status, out);
  return out.Take();
}

}  // namespace txl
