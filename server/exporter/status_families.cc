#include "server/exporter/status_families.h"

#include <prometheus/text_serializer.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace txl {
namespace {

double Value(int64_t count) { return static_cast<double>(count); }

double UnixSeconds(absl::Time time) {
  return absl::ToDoubleSeconds(time - absl::UnixEpoch());
}

void AddFacts(const ExporterFacts& facts, FamilyList& out) {
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
}

void AddServer(const ServerStatus& status, FamilyList& out) {
  FamilyRef begin =
      out.Gauge("txl_tls_certificate_begin_seconds",
                "When the server's certificate begins, since 1970");
  FamilyRef end = out.Gauge("txl_tls_certificate_end_seconds",
                            "When the server's certificate ends, since 1970");
  if (status.certificate.has_value()) {
    begin.Sample(UnixSeconds(status.certificate->begin));
    end.Sample(UnixSeconds(status.certificate->end));
  }
  out.Gauge("txl_self_test_info",
            "Always 1; what the self-test at load said of the step")
      .Sample(1, {{"result", NameOf(status.self_test.result)}});
  out.Gauge("txl_self_test_seconds", "What the self-test at load took")
      .Sample(status.self_test.seconds);
  FamilyRef state = out.Gauge("txl_server_state", "1 for the server's state");
  for (const auto& [phase, name] :
       {std::pair(ServerPhase::kStarting, "starting"),
        std::pair(ServerPhase::kReady, "ready"),
        std::pair(ServerPhase::kDraining, "draining")}) {
    state.Sample(status.phase == phase ? 1 : 0, {{"state", name}});
  }
  out.Gauge("txl_server_uptime_seconds", "Time since the start of the server")
      .Sample(absl::ToDoubleSeconds(status.uptime));
  FamilyRef calls = out.Counter("txl_calls_total", "Calls that have ended");
  for (const auto& [kind, count] : status.snapshot.calls) {
    calls.Sample(Value(count),
                 {{"method", std::string(kind.method)},
                  {"status", absl::StatusCodeToString(kind.code)}});
  }
}

void AddRequests(const Snapshot& s, FamilyList& out) {
  out.Gauge("txl_requests_running", "Turns that have left the queue")
      .Sample(Value(s.turns_active - s.queued_calls));
  out.Gauge("txl_requests_waiting", "Turns in the queue")
      .Sample(Value(s.queued_calls));
  out.Gauge("txl_requests_parked", "Running turns whose client does not read")
      .Sample(Value(s.turns_parked));
  out.Gauge("txl_requests_parked_out",
            "Parked turns that have given up their slots")
      .Sample(Value(s.turns_parked_out));
  out.Counter("txl_parked_moves_total",
              "How often parked turns gave up their slots")
      .Sample(Value(s.parked_moves));
  out.Counter("txl_displaced_moves_total",
              "How often turns gave up their slots for more urgent ones, or "
              "because their tenant had no tokens left")
      .Sample(Value(s.turns_displaced));
  out.Gauge("txl_queue_tokens", "Prompt tokens of the turns in the queue")
      .Sample(Value(s.queued_tokens));
  out.Gauge("txl_stream_queue_tokens",
            "Tokens that wait in streams for their clients to read, now: a "
            "gauge, as the length of any queue")
      .Sample(Value(s.stream_queue_tokens));
  out.Counter("txl_requests_started_total", "Turns taken into the queue")
      .Sample(Value(s.turns_started));
  FamilyRef ended = out.Counter("txl_requests_total", "Turns that have ended");
  for (const auto& [kind, count] : s.turns_ended) {
    ended.Sample(Value(count),
                 {{"outcome", kind.first}, {"reason", kind.second}});
  }
}

void AddTenants(const std::vector<TenantCounts>& tenants, FamilyList& out) {
  const auto add = [&tenants](FamilyRef family, int64_t TenantCounts::*value) {
    for (const TenantCounts& counts : tenants) {
      family.Sample(Value(counts.*value), {{"tenant", counts.tenant}});
    }
  };
  add(out.Counter("txl_tenant_requests_started_total",
                  "Turns of a tenant taken into the queue"),
      &TenantCounts::turns_started);
  add(out.Gauge("txl_tenant_requests_active",
                "Turns of a tenant that have not ended"),
      &TenantCounts::turns_active);
  add(out.Counter("txl_tenant_prompt_tokens_total",
                  "Tokens of a tenant's inputs that were fed"),
      &TenantCounts::tokens_prompt);
  add(out.Counter("txl_tenant_generated_tokens_total",
                  "Tokens handed to a tenant's streams"),
      &TenantCounts::tokens_delivered);
  add(out.Counter("txl_tenant_refused_total",
                  "Calls, turns and sessions that a quota refused"),
      &TenantCounts::refused);
  add(out.Gauge("txl_tenant_sessions", "Sessions of a tenant, stored or not"),
      &TenantCounts::sessions);
  add(out.Gauge("txl_tenant_session_bytes",
                "What a tenant's sessions count with"),
      &TenantCounts::session_bytes);
}

void AddRequestTimes(const Distributions& d, FamilyList& out) {
  out.Histograms("txl_request_queue_seconds", "Time of turns in the queue")
      .Sample(d.queue_seconds);
  out.Histograms("txl_request_duration_seconds",
                 "Time from the queue to the end of turns")
      .Sample(d.request_seconds);
  out.Histograms("txl_request_prompt_tokens", "Input lengths of ended turns")
      .Sample(d.prompt_tokens);
  out.Histograms("txl_request_generated_tokens",
                 "Tokens generated by ended Generate turns")
      .Sample(d.generated_tokens);
  out.Histograms("txl_time_to_first_token_seconds",
                 "Time from the queue to a turn's first token")
      .Sample(d.first_token_seconds);
  out.Histograms("txl_inter_token_latency_seconds",
                 "Time between two tokens of a turn")
      .Sample(d.inter_token_seconds);
  out.Histograms("txl_request_time_per_output_token_seconds",
                 "Mean time between the tokens of an ended turn")
      .Sample(d.time_per_output_token_seconds);
  out.Histograms("txl_cancel_to_release_seconds",
                 "Time from a client's leaving to the end of its turn")
      .Sample(d.cancel_to_release_seconds);
  out.Histograms("txl_stream_stall_seconds",
                 "Time for which a turn waited for its client to read")
      .Sample(d.stall_seconds);
}

void AddSteps(const ServerStatus& status, FamilyList& out) {
  const Snapshot& s = status.snapshot;
  const Distributions& d = s.distributions;
  out.Counter("txl_steps_total", "Steps on the device").Sample(Value(s.steps));
  out.Counter("txl_steps_failed_total", "Steps that the device failed")
      .Sample(Value(s.steps_failed));
  out.Counter("txl_steps_with_decode_total", "Steps in which a row sampled")
      .Sample(Value(s.steps_with_decode));
  FamilyRef seconds = out.Histograms("txl_step_seconds", "Time of a step");
  for (const auto& [kind, name] : {std::pair(StepKind::kDecode, "decode"),
                                   std::pair(StepKind::kPrompt, "prompt"),
                                   std::pair(StepKind::kMixed, "mixed")}) {
    seconds.Sample(d.step_seconds[static_cast<size_t>(kind)], {{"kind", name}});
  }
  out.Histograms("txl_step_batch_size", "Turns in a step")
      .Sample(d.step_batch_size);
  out.Histograms("txl_step_tokens", "Rows of a step").Sample(d.step_tokens);
  out.Gauge("txl_last_step_timestamp_seconds",
            "When the last step ended, since 1970; 0: none has")
      .Sample(s.steps == 0 ? 0 : UnixSeconds(s.last_step));
  out.Gauge("txl_last_step_age_seconds",
            "Time since the last step ended while work waits, else 0")
      .Sample(absl::ToDoubleSeconds(status.stall));
}

void AddTokens(const Snapshot& s, FamilyList& out) {
  out.Counter("txl_rows_total", "Tokens through the layers, by kind")
      .Sample(Value(s.rows_decode), {{"kind", "decode"}})
      .Sample(Value(s.rows_prefill), {{"kind", "prefill"}})
      .Sample(Value(s.rows_score), {{"kind", "score"}})
      .Sample(Value(s.rows_rebuild), {{"kind", "rebuild"}});
  out.Counter("txl_rows_kept_total", "Rows that their turn kept")
      .Sample(Value(s.tokens_fed));
  out.Counter("txl_rows_discarded_total", "Rows that no turn kept")
      .Sample(Value(s.rows_discarded));
  out.Counter("txl_tokens_sampled_total", "Tokens sampled")
      .Sample(Value(s.tokens_sampled));
  out.Counter("txl_tokens_guessed_total", "Tokens that were guessed and fed")
      .Sample(Value(s.tokens_guessed));
  out.Counter("txl_guesses_accepted_total", "Guesses that were what came")
      .Sample(Value(s.guesses_accepted));
  out.Counter("txl_steps_saved_total", "Steps less because of guesses")
      .Sample(Value(s.steps_saved));
  out.Counter("txl_tokens_total", "Tokens by what they were")
      .Sample(Value(s.tokens_prompt), {{"kind", "prompt"}})
      .Sample(Value(s.tokens_delivered), {{"kind", "generated"}})
      .Sample(Value(s.rows_rebuild), {{"kind", "recomputed"}})
      .Sample(Value(s.tokens_discarded), {{"kind", "wasted"}});
}

void AddSoftmax(const SoftmaxTails& tails, FamilyList& out) {
  FamilyRef family =
      out.Counter("txl_softmax_tail_total",
                  "Distributions by whether a cluster's words were computed");
  for (size_t c = 0; c < tails.size(); ++c) {
    const std::string cluster = absl::StrCat(c);
    family
        .Sample(Value(tails[c].computed),
                {{"cluster", cluster}, {"action", "computed"}})
        .Sample(Value(tails[c].skipped),
                {{"cluster", cluster}, {"action", "skipped"}});
  }
}

void AddSessions(const SessionCounts& sessions, FamilyList& out) {
  out.Gauge("txl_sessions", "Sessions, by whether a turn has them")
      .Sample(Value(sessions.busy), {{"state", "busy"}})
      .Sample(Value(sessions.idle), {{"state", "idle"}});
  out.Counter("txl_sessions_created_total", "Sessions made, temporary ones too")
      .Sample(Value(sessions.created));
  out.Counter("txl_sessions_ended_total", "Sessions deleted or expired")
      .Sample(Value(sessions.ended));
}

void AddResidency(const ExporterFacts& facts, const ServerStatus& status,
                  FamilyList& out) {
  const Snapshot& s = status.snapshot;
  out.Gauge("txl_session_slots", "Slots of segment memory on the device")
      .Sample(Value(s.slots_total));
  out.Gauge("txl_session_slots_used", "Slots that hold a session")
      .Sample(Value(s.slots_used));
  out.Gauge("txl_session_slots_used_ratio", "Share of slots that hold one")
      .Sample(s.slots_total == 0 ? 0
                                 : Value(s.slots_used) / Value(s.slots_total));
  out.Gauge("txl_session_state_bytes", "Segment memory of sessions, by place")
      .Sample(Value(s.slots_used * facts.bytes_per_slot), {{"tier", "device"}})
      .Sample(Value(status.sessions.image_bytes), {{"tier", "host"}});
  out.Gauge("txl_replay_bytes", "Kept answers of turns with a request_id")
      .Sample(Value(status.sessions.turn_record_bytes));
  out.Counter("txl_session_evictions_total", "Sessions moved out of a slot")
      .Sample(Value(s.sessions_moved_out),
              {{"from", "device"}, {"to", "host"}, {"cause", "slot_needed"}});
  out.Histograms("txl_session_idle_before_evict_seconds",
                 "Time since a session's last use when it was moved out")
      .Sample(s.distributions.idle_before_evict_seconds);
  out.Counter("txl_session_restores_total", "Sessions brought into a slot")
      .Sample(Value(s.image_restores_ok),
              {{"source", "image"}, {"outcome", "ok"}})
      .Sample(Value(s.image_restores_failed),
              {{"source", "image"}, {"outcome", "failed"}})
      .Sample(Value(s.rebuilds_ok), {{"source", "tokens"}, {"outcome", "ok"}})
      .Sample(Value(s.rebuilds_failed),
              {{"source", "tokens"}, {"outcome", "failed"}});
  out.Histograms("txl_session_restore_seconds",
                 "Time until a session stood in its slot")
      .Sample(s.distributions.restore_seconds, {{"source", "image"}});
}

void AddPrefixes(const Snapshot& s, FamilyList& out) {
  out.Counter("txl_prefix_cache_lookups_total",
              "Turns for whose prompt a known beginning was looked for")
      .Sample(Value(s.prefix_lookups));
  out.Counter("txl_prefix_cache_hits_total", "Turns that found one")
      .Sample(Value(s.prefix_hits));
  out.Counter("txl_prompt_tokens_cached_total",
              "Prompt tokens that were found and not fed")
      .Sample(Value(s.tokens_cached));
  out.Gauge("txl_prefix_cache_images", "State images of prompts")
      .Sample(Value(s.prefix_images));
  out.Gauge("txl_prefix_cache_bytes", "Bytes of the prefix cache")
      .Sample(Value(s.prefix_bytes));
  out.Counter("txl_prefix_cache_evictions_total",
              "Images given up to make room for others")
      .Sample(Value(s.prefix_evictions));
}

void AddMemory(const ServerStatus& status, FamilyList& out) {
  const MemoryUse& memory = status.memory;
  const MemoryDivision& division = memory.division;
  out.Gauge("txl_memory_limit_bytes", "What the process may take; 0: no limit")
      .Sample(Value(division.limit));
  out.Gauge("txl_memory_part_bytes", "The limit's parts")
      .Sample(Value(division.weights), {{"part", "weights"}})
      .Sample(Value(division.slots), {{"part", "slots"}})
      .Sample(Value(division.images), {{"part", "images"}})
      .Sample(Value(division.prefixes), {{"part", "prefixes"}})
      .Sample(Value(division.ids), {{"part", "ids"}})
      .Sample(Value(division.records), {{"part", "records"}})
      .Sample(Value(division.requests), {{"part", "requests"}})
      .Sample(Value(division.streams), {{"part", "streams"}})
      .Sample(Value(division.reserve), {{"part", "reserve"}});
  out.Gauge("txl_memory_used_bytes", "What is used of a part")
      .Sample(Value(status.sessions.image_bytes), {{"part", "images"}})
      .Sample(Value(status.snapshot.prefix_bytes), {{"part", "prefixes"}})
      .Sample(Value(status.sessions.id_bytes), {{"part", "ids"}})
      .Sample(Value(status.sessions.turn_record_bytes), {{"part", "records"}})
      .Sample(Value(memory.request_bytes), {{"part", "requests"}})
      .Sample(Value(memory.stream_bytes), {{"part", "streams"}});
  out.Counter("txl_memory_refused_total", "Requests that found no room in one")
      .Sample(Value(memory.requests_refused), {{"part", "requests"}})
      .Sample(Value(memory.streams_refused), {{"part", "streams"}});
  out.Gauge("txl_memory_shedding", "1 while new work is shed, else 0")
      .Sample(memory.shedding ? 1 : 0);
}

void AddCalls(const ServerStatus& status, FamilyList& out) {
  out.Gauge("txl_calls_open", "Open calls, by what they wait for")
      .Sample(Value(status.calls.reading), {{"state", "reading"}})
      .Sample(Value(status.calls.answering), {{"state", "answering"}})
      .Sample(Value(status.calls.open - status.calls.reading -
                    status.calls.answering),
              {{"state", "working"}});
  out.Gauge("txl_connections", "Open connections")
      .Sample(Value(status.connections.open));
  out.Gauge("txl_connections_limit", "Connections that may be open")
      .Sample(Value(status.connections.limit));
  out.Counter("txl_connections_refused_total", "Connections over the limit")
      .Sample(Value(status.connections.refused));
  out.Counter("txl_calls_refused_total", "Calls that got OVERLOADED")
      .Sample(Value(status.calls.refused));
  out.Gauge("txl_work_queued", "Large requests and answers that wait")
      .Sample(Value(status.work.queued));
  out.Gauge("txl_work_running", "Those that are worked on")
      .Sample(Value(status.work.running));
  out.Counter("txl_work_total", "Those that have left the queue, by outcome")
      .Sample(Value(status.work.done), {{"outcome", "done"}})
      .Sample(Value(status.work.refused), {{"outcome", "refused"}});
  out.Counter("txl_log_lines_dropped_total",
              "Lines of the log for which there was no room")
      .Sample(Value(status.log_lines_dropped));
  out.Counter("txl_audit_lines_lost_total",
              "Lines of --audit-log that could not be written")
      .Sample(Value(status.audit_lines_lost));
  out.Counter("txl_trace_lines_lost_total",
              "Lines of --trace-file that could not be written")
      .Sample(Value(status.span_lines_lost));
}

// The names that every Prometheus client library gives them.
void AddProcess(const ProcessStatus& process, FamilyList& out) {
  out.Counter("process_cpu_seconds_total", "User and system time")
      .Sample(process.cpu_seconds);
  out.Gauge("process_start_time_seconds", "Start of the process, since 1970")
      .Sample(process.start_time_seconds);
  out.Gauge("process_resident_memory_bytes", "Memory in use")
      .Sample(Value(process.resident_bytes));
  out.Gauge("process_virtual_memory_bytes", "Address space in use")
      .Sample(Value(process.virtual_bytes));
  out.Gauge("process_threads", "Threads").Sample(Value(process.threads));
  out.Gauge("process_open_fds", "Open file descriptors")
      .Sample(Value(process.open_fds));
  out.Gauge("process_max_fds", "Most file descriptors that may be open")
      .Sample(Value(process.max_fds));
}

void AddStore(const ServerStatus& status, FamilyList& out) {
  const bool stored = status.store.has_value();
  const StoreUse store = status.store.value_or(StoreUse());
  const auto sample = [stored](FamilyRef family, int64_t value) {
    if (stored) family.Sample(Value(value));
  };
  FamilyRef state = out.Gauge("txl_store_state", "1 for the store's state");
  for (const char* name : {"serving", "full", "failed", "unreachable"}) {
    if (stored) state.Sample(store.state == name ? 1 : 0, {{"state", name}});
  }
  FamilyRef bytes = out.Gauge("txl_store_bytes", "Bytes of the store's files");
  if (stored) {
    bytes.Sample(Value(store.database_bytes), {{"kind", "database"}})
        .Sample(Value(store.image_bytes), {{"kind", "images"}});
  }
  FamilyRef seconds =
      out.Histograms("txl_store_commit_seconds", "Time of a commit");
  if (stored) seconds.Sample(store.commit_seconds);
  sample(out.Gauge("txl_store_limit_bytes",
                   "Bytes that its database may take; 0: no limit"),
         store.limit_bytes);
  sample(out.Gauge("txl_store_sessions", "Sessions stored"), store.sessions);
  sample(out.Gauge("txl_store_lag_tokens",
                   "Tokens that are not on stable storage yet"),
         store.tokens_waiting);
  sample(out.Counter("txl_store_tokens_total", "Tokens on stable storage"),
         store.tokens_written);
  sample(out.Counter("txl_store_commits_total", "Commits of the store"),
         store.commits);
  FamilyRef ownership =
      out.Counter("txl_ownership_total", "Sessions shared with other servers");
  for (const auto& [event, count] :
       {std::pair("acquired", store.acquired),
        std::pair("taken_over", store.taken_over),
        std::pair("fenced", store.fenced), std::pair("busy", store.busy)}) {
    if (stored) ownership.Sample(Value(count), {{"event", event}});
  }
  sample(out.Counter("txl_store_lost_tokens_total",
                     "Tokens that the store had confirmed and has no more"),
         store.tokens_lost);
  sample(out.Counter("txl_sessions_loaded_total",
                     "Sessions that came from the store into memory"),
         status.sessions.loaded);
  sample(out.Counter("txl_sessions_stored_away_total",
                     "Sessions that left memory for the store"),
         status.sessions.stored_away);
}

}  // namespace

std::vector<prometheus::MetricFamily> StatusFamilies(
    const ExporterFacts& facts, const ServerStatus& status,
    const ProcessStatus& process) {
  FamilyList out;
  AddFacts(facts, out);
  AddServer(status, out);
  AddRequests(status.snapshot, out);
  AddTenants(status.snapshot.tenants, out);
  AddRequestTimes(status.snapshot.distributions, out);
  AddSteps(status, out);
  AddTokens(status.snapshot, out);
  AddSoftmax(status.snapshot.softmax_tails, out);
  AddSessions(status.sessions, out);
  AddResidency(facts, status, out);
  AddPrefixes(status.snapshot, out);
  AddMemory(status, out);
  AddCalls(status, out);
  AddStore(status, out);
  AddProcess(process, out);
  return out.Take();
}

namespace {

prometheus::ClientMetric WithLabels(const MetricLabels& labels) {
  prometheus::ClientMetric metric;
  metric.label.reserve(labels.size());
  for (const auto& [name, value] : labels) {
    metric.label.push_back({name, value});
  }
  return metric;
}

}  // namespace

FamilyRef FamilyRef::Sample(double value, const MetricLabels& labels) {
  prometheus::ClientMetric metric = WithLabels(labels);
  if (family_->type == prometheus::MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  family_->metric.push_back(std::move(metric));
  return *this;
}

FamilyRef FamilyRef::Sample(const Histogram& histogram,
                            const MetricLabels& labels) {
  prometheus::ClientMetric metric = WithLabels(labels);
  metric.histogram.sample_count = static_cast<uint64_t>(histogram.count());
  metric.histogram.sample_sum = histogram.sum();
  for (size_t i = 0; i < histogram.bounds().size(); ++i) {
    prometheus::ClientMetric::Bucket bucket;
    bucket.upper_bound = histogram.bounds()[i];
    bucket.cumulative_count = static_cast<uint64_t>(histogram.AtMost(i));
    metric.histogram.bucket.push_back(bucket);
  }
  family_->metric.push_back(std::move(metric));
  return *this;
}

FamilyRef FamilyList::Counter(const std::string& name,
                              const std::string& help) {
  return Add(prometheus::MetricType::Counter, name, help);
}

FamilyRef FamilyList::Gauge(const std::string& name, const std::string& help) {
  return Add(prometheus::MetricType::Gauge, name, help);
}

FamilyRef FamilyList::Histograms(const std::string& name,
                                 const std::string& help) {
  return Add(prometheus::MetricType::Histogram, name, help);
}

FamilyRef FamilyList::Add(prometheus::MetricType type, const std::string& name,
                          const std::string& help) {
  prometheus::MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  families_.push_back(std::move(family));
  return FamilyRef(&families_.back());
}

StatusCollector::StatusCollector(ExporterFacts facts, StatusSource source)
    : facts_(std::move(facts)), source_(std::move(source)) {}

std::vector<prometheus::MetricFamily> StatusCollector::Collect() const {
  return StatusFamilies(facts_, source_(), ReadProcessStatus());
}

std::string MetricsText(const StatusCollector& collector) {
  return prometheus::TextSerializer().Serialize(collector.Collect());
}

}  // namespace txl
