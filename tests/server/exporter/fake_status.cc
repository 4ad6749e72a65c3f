#include "tests/server/exporter/fake_status.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <sstream>

namespace txl::testing {
namespace {

void Observe(Histogram& histogram, int times, double value) {
  for (int i = 0; i < times; ++i) histogram.Observe(value);
}

void FillDistributions(Distributions& d) {
  Observe(d.queue_seconds, 95, 0.25);
  Observe(d.request_seconds, 90, 0.5);
  Observe(d.prompt_tokens, 90, 16);
  Observe(d.generated_tokens, 80, 32);
  Observe(d.cancel_to_release_seconds, 20, 0.125);
  Observe(d.first_token_seconds, 60, 0.0625);
  Observe(d.inter_token_seconds, 540, 0.03125);
  Observe(d.time_per_output_token_seconds, 50, 0.03125);
  Observe(d.stall_seconds, 2, 4);
  Observe(d.step_seconds[0], 200, 0.015625);
  Observe(d.step_seconds[1], 80, 0.25);
  Observe(d.step_seconds[2], 17, 0.5);
  Observe(d.step_batch_size, 300, 4);
  Observe(d.step_tokens, 300, 8);
  Observe(d.restore_seconds, 6, 0.5);
  Observe(d.idle_before_evict_seconds, 9, 64);
}

void FillStore(ServerStatus& status) {
  StoreUse& store = status.store.emplace();
  store.durability = "turn";
  store.state = "full";
  store.sessions = 501;
  store.database_bytes = 502;
  store.image_bytes = 503;
  store.limit_bytes = 504;
  store.tokens_waiting = 505;
  store.tokens_written = 506;
  store.commits = 507;
  store.acquired = 508;
  store.taken_over = 509;
  store.fenced = 510;
  store.busy = 511;
  store.tokens_lost = 512;
  Observe(store.commit_seconds, 507, 0.125);
}

void FillMemory(ServerStatus& status) {
  status.sessions.image_bytes = 7777;
  status.sessions.id_bytes = 6666;
  status.sessions.turn_record_bytes = 5555;
  status.memory.division = {395, 10, 20, 30, 35, 40, 50, 60, 70, 80};
  status.memory.shedding = true;
  status.memory.request_bytes = 4444;
  status.memory.requests_refused = 44;
  status.memory.stream_bytes = 3333;
  status.memory.streams_refused = 33;
}

void FillCalls(ServerStatus& status) {
  status.calls.open = 9;
  status.calls.reading = 3;
  status.calls.answering = 2;
  status.calls.refused = 51;
  status.connections = {61, 62, 63};
  status.work.queued = 4;
  status.work.running = 1;
  status.work.done = 52;
  status.work.refused = 53;
  status.log_lines_dropped = 54;
  status.audit_lines_lost = 71;
  status.span_lines_lost = 72;
}

void FillTurns(Snapshot& s) {
  s.turns_started = 101;
  s.turns_active = 11;
  s.queued_calls = 6;
  s.queued_tokens = 66;
  s.turns_parked = 3;
  s.turns_parked_out = 2;
  s.parked_moves = 17;
  s.turns_displaced = 18;
  s.tenants = {{"other", 30, 2, 300, 200, 4, 5, 5000},
               {"a", 71, 9, 255, 400, 0, 6, 6000}};
  s.turns_finished = {{"OK", 70}, {"CANCELLED", 20}};
  s.turns_ended = {{{"OK", "MAX_TOKENS"}, 60},
                   {{"OK", "APPENDED"}, 10},
                   {{"CANCELLED", "CANCELLED"}, 20}};
  s.calls = {{{"txl.v1.S/A", absl::StatusCode::kOk}, 71},
             {{"txl.v1.S/A", absl::StatusCode::kAborted}, 21},
             {{"txl.v1.S/B", absl::StatusCode::kOk}, 31}};
}

void FillSteps(Snapshot& s) {
  s.steps = 300;
  s.steps_failed = 3;
  s.last_step = absl::FromUnixMillis(1'700'000'000'250);
  s.steps_with_decode = 250;
  s.steps_with_prompt_and_decode = 17;
  s.rows_decode = 610;
  s.rows_prefill = 410;
  s.rows_score = 210;
  s.rows_rebuild = 110;
  s.rows_run = 610 + 410 + 210 + 110;
  s.rows_discarded = 40;
  s.tokens_fed = s.rows_run - 40;
  s.tokens_sampled = 608;
  s.tokens_delivered = 600;
  s.tokens_discarded = 8;
  s.tokens_prompt = 555;
  s.tokens_guessed = 91;
  s.guesses_accepted = 53;
  s.steps_saved = 29;
  s.softmax_tails = {{.computed = 700, .skipped = 118},
                     {.computed = 18, .skipped = 800}};
  s.stream_queue_tokens = 77;
  s.slots_total = 32;
  s.slots_used = 8;
  s.sessions_moved_out = 9;
  s.sessions_moved_in = 7;
  s.image_restores_ok = 6;
  s.image_restores_failed = 1;
  s.rebuilds_ok = 5;
  s.rebuilds_failed = 2;
  s.prefix_lookups = 88;
  s.prefix_hits = 66;
  s.tokens_cached = 333;
  s.prefix_images = 13;
  s.prefix_bytes = 2222;
  s.prefix_evictions = 14;
  s.step_seconds = 31.625;
}

}  // namespace

ExporterFacts FakeFacts() {
  return {.version = "1.2.3",
          .model = "verona",
          .fingerprint = "f00d",
          .device = "cpu",
          .kernel = "k",
          .form = "projected",
          .weight_dtype = "f32",
          .memory_dtype = "f16",
          .bytes_per_slot = 1000};
}

ServerStatus FakeStatus() {
  ServerStatus status;
  status.phase = ServerPhase::kReady;
  status.uptime = absl::Seconds(1234.5);
  status.stall = absl::Milliseconds(1500);
  status.certificate = {absl::FromUnixSeconds(1700000100),
                        absl::FromUnixSeconds(1700100000)};
  status.self_test = {SelfTestResult::kFellBack, "k2", "rows differ", 0.75};
  status.sessions.busy = 11;
  status.sessions.idle = 12;
  status.sessions.created = 123;
  status.sessions.ended = 99;
  status.sessions.loaded = 25;
  status.sessions.stored_away = 26;
  FillMemory(status);
  FillCalls(status);
  FillStore(status);
  FillTurns(status.snapshot);
  FillSteps(status.snapshot);
  FillDistributions(status.snapshot.distributions);
  return status;
}

ProcessStatus FakeProcess() {
  return {.cpu_seconds = 12.5,
          .start_time_seconds = 1'699'999'000,
          .resident_bytes = 4096,
          .virtual_bytes = 8192,
          .threads = 13,
          .open_fds = 14,
          .max_fds = 1024};
}

std::string TextOf(const std::vector<prometheus::MetricFamily>& families) {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families);
  return text.str();
}

Scrape ScrapeOf(const ServerStatus& status) {
  Scrape scrape =
      ParseScrape(TextOf(StatusFamilies(FakeFacts(), status, FakeProcess())));
  for (const std::string& line : scrape.mistakes) ADD_FAILURE() << line;
  return scrape;
}

}  // namespace txl::testing
