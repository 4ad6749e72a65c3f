// What is said of a call that has ended: the log's line, the audit log's, its
// spans, its count.

#include "server/api/call_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/sha.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "server/base/error.h"
#include "server/base/log.h"
#include "server/base/text_file.h"
#include "tests/fakes/fake_clock.h"

namespace txl {
namespace {

using nlohmann::json;
using testing::IsEmpty;
using testing::SizeIs;

class EndRecordTest : public testing::Test {
 protected:
  ~EndRecordTest() override { RemoveFiles(); }
  void RemoveFiles() {
    for (const std::string& path : {audit_path_, spans_path_}) {
      std::remove(path.c_str());
    }
  }
  CallRecord Start(const char* method = "txl.v1.S/M") {
    return StartRecord(method, &clock_, &metrics_);
  }
  // With files, whose lines Close returns.
  void OpenFiles() {
    RemoveFiles();
    audit_ = *LineFile::Open({"audit-log", audit_path_});
    spans_ = *LineFile::Open({"trace-file", spans_path_});
    lines_.audit = audit_.get();
    lines_.spans = spans_.get();
  }
  CallRecord StartKnown() {
    CallRecord record = Start();
    record.lines = &lines_;
    record.tenant = "alice";
    record.key = "laptop";
    record.trace = StartTrace({kParent}, 0);
    return record;
  }
  static std::vector<json> LinesOf(std::unique_ptr<LineFile>& file,
                                   const std::string& path) {
    file.reset();
    std::vector<json> lines;
    for (const auto line :
         absl::StrSplit(ReadTextFile(path), '\n', absl::SkipEmpty())) {
      lines.push_back(json::parse(line));
    }
    return lines;
  }
  std::vector<json> AuditLines() { return LinesOf(audit_, audit_path_); }
  std::vector<json> SpanLines() { return LinesOf(spans_, spans_path_); }

  static constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";
  static constexpr char kParent[] =
      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const std::string audit_path_ =
      testing::TempDir() + "/call_record_audit_" + std::to_string(getpid());
  const std::string spans_path_ =
      testing::TempDir() + "/call_record_spans_" + std::to_string(getpid());
  FakeClock clock_;
  Metrics metrics_;
  LogCapture log_;
  CallLines lines_;
  std::unique_ptr<LineFile> audit_;
  std::unique_ptr<LineFile> spans_;
};

TEST_F(EndRecordTest, WritesOneLineWithNeitherTextNorIds) {
  CallRecord record = Start();
  record.tenant = "alice";
  record.key = "laptop";
  record.peer = "ipv4:127.0.0.1:4711";
  record.session = "0123456789abcdef";
  record.request_id = "retry-1";
  record.trace.trace_id = kTrace;
  record.prompt_tokens = 3;
  record.cached_tokens = 2;
  record.generated_tokens = 4;
  record.times = {clock_.Monotonic(), clock_.Monotonic() + absl::Seconds(0.25),
                  clock_.Monotonic() + absl::Seconds(0.5),
                  clock_.Monotonic() + absl::Seconds(1)};
  clock_.Advance(absl::Milliseconds(1500));
  EndRecord(record, FieldError("f", "m"));
  ASSERT_THAT(log_.lines(), SizeIs(1));
  const auto line = json::parse(log_.lines()[0]);
  EXPECT_EQ(line["severity"], "INFO");
  EXPECT_EQ(line["event"], "call");
  EXPECT_EQ(line["fields"], json({{"method", "txl.v1.S/M"},
                                  {"status", "INVALID_ARGUMENT"},
                                  {"reason", "FIELD_INVALID"},
                                  {"tenant", "alice"},
                                  {"key", "laptop"},
                                  {"peer", "ipv4:127.0.0.1:4711"},
                                  {"named_session", true},
                                  {"session", "0123456789abcdef"},
                                  {"request_id", "retry-1"},
                                  {"prompt_tokens", 3},
                                  {"cached_tokens", 2},
                                  {"generated_tokens", 4},
                                  {"trace_id", kTrace},
                                  {"queue_seconds", 0.25},
                                  {"run_seconds", 0.75},
                                  {"seconds", 1.5}}));
}

TEST_F(EndRecordTest, CountsTheCallByMethodAndStatus) {
  EndRecord(Start("S/M"), absl::OkStatus());
  EndRecord(Start("S/M"), FieldError("f", "m"));
  EndRecord(Start("S/M"), FieldError("f", "m"));
  const Snapshot s = metrics_.Get();
  EXPECT_EQ(s.calls.size(), 2u);
  EXPECT_EQ(s.calls.at({"S/M", absl::StatusCode::kOk}), 1);
  EXPECT_EQ(s.calls.at({"S/M", absl::StatusCode::kInvalidArgument}), 2);
}

TEST_F(EndRecordTest, ShowsTheOperatorWhatClientsDoNotSee) {
  EndRecord(Start(), absl::InternalError("the cause"));
  const auto line = json::parse(log_.lines()[0]);
  EXPECT_EQ(line["severity"], "ERROR");
  EXPECT_EQ(line["fields"]["error"], "the cause");
}

TEST_F(EndRecordTest, TheAuditLogHasTheSameLine) {
  OpenFiles();
  EndRecord(StartKnown(), absl::OkStatus());
  const std::vector<json> audit = AuditLines();
  ASSERT_THAT(audit, SizeIs(1));
  EXPECT_EQ(audit[0]["fields"], json::parse(log_.lines()[0])["fields"]);
  EXPECT_EQ(audit[0]["event"], "call");
}

TEST_F(EndRecordTest, TheAuditLogLeavesOutNobodyWhoIsKnown) {
  OpenFiles();
  for (int i = 0; i < 2 * kRefusalLines; ++i) {
    EndRecord(StartKnown(), FieldError("f", "m"));
  }
  EXPECT_THAT(AuditLines(), SizeIs(2 * kRefusalLines));
  EXPECT_THAT(SpanLines(), SizeIs(2 * kRefusalLines));
  EXPECT_THAT(log_.lines(), SizeIs(kRefusalLines));
}

TEST_F(EndRecordTest, StrangersCannotFillADisk) {
  OpenFiles();
  const auto refuse = [this] {
    CallRecord record = StartKnown();
    record.tenant.clear();
    record.key.clear();
    EndRecord(record, absl::UnauthenticatedError("no key"));
  };
  for (int i = 0; i < 3 * kRefusalLines; ++i) refuse();
  clock_.Advance(absl::Seconds(1));
  refuse();
  const std::vector<json> audit = AuditLines();
  ASSERT_THAT(audit, SizeIs(kRefusalLines + 1));
  EXPECT_EQ(audit.back()["fields"]["lines_left_out"], 2 * kRefusalLines);
  EXPECT_FALSE(audit.front()["fields"].contains("lines_left_out"));
  EXPECT_THAT(SpanLines(), SizeIs(kRefusalLines + 1));
}

TEST_F(EndRecordTest, ACallThatIsNotSampledHasNoSpan) {
  OpenFiles();
  CallRecord record = StartKnown();
  record.trace = StartTrace({}, 0);
  EndRecord(record, absl::OkStatus());
  EXPECT_THAT(SpanLines(), IsEmpty());
  EXPECT_THAT(AuditLines(), SizeIs(1));
}

// Nanoseconds of a span's border after the call's arrival.
int64_t After(const json& span, const char* border, absl::Time arrival) {
  return std::stoll(span[border].get<std::string>()) -
         absl::ToUnixNanos(arrival);
}

TEST_F(EndRecordTest, ACallsSpanHasItsTurnsSpansBelow) {
  OpenFiles();
  const absl::Time arrival = clock_.Now();
  CallRecord record = StartKnown();
  record.prompt_tokens = 12;
  const absl::Duration start = clock_.Monotonic();
  record.times = {start + absl::Nanoseconds(10), start + absl::Nanoseconds(20),
                  start + absl::Nanoseconds(50), start + absl::Nanoseconds(90)};
  clock_.Advance(absl::Nanoseconds(100));
  EndRecord(record, absl::OkStatus());
  const std::vector<json> lines = SpanLines();
  ASSERT_THAT(lines, SizeIs(1));
  const json spans = lines[0]["resourceSpans"][0]["scopeSpans"][0]["spans"];
  ASSERT_THAT(spans, SizeIs(4));
  struct Expected {
    const char* name;
    int64_t begin, end;
  };
  const Expected expected[] = {{"txl.v1.S/M", 0, 100},
                               {"queue", 10, 20},
                               {"prefill", 20, 50},
                               {"decode", 50, 90}};
  for (size_t i = 0; i < 4; ++i) {
    const json& span = spans[i];
    EXPECT_EQ(span["name"], expected[i].name);
    EXPECT_EQ(span["traceId"], kTrace);
    EXPECT_EQ(span["kind"], i == 0 ? 2 : 1);
    EXPECT_EQ(span["parentSpanId"],
              i == 0 ? json("00f067aa0ba902b7") : spans[0]["spanId"]);
    EXPECT_EQ(After(span, "startTimeUnixNano", arrival), expected[i].begin);
    EXPECT_EQ(After(span, "endTimeUnixNano", arrival), expected[i].end);
  }
  EXPECT_EQ(spans[0]["spanId"], record.trace.span_id);
  EXPECT_THAT(spans[0]["attributes"],
              testing::Contains(json({{"key", "prompt_tokens"},
                                      {"value", {{"intValue", "12"}}}})));
  EXPECT_EQ(spans[0]["status"], json({{"code", 1}}));
}

TEST_F(EndRecordTest, ACallWithoutATurnIsOneSpan) {
  OpenFiles();
  EndRecord(StartKnown(), FieldError("f", "a text of the client's"));
  const std::vector<json> lines = SpanLines();
  ASSERT_THAT(lines, SizeIs(1));
  const json spans = lines[0]["resourceSpans"][0]["scopeSpans"][0]["spans"];
  ASSERT_THAT(spans, SizeIs(1));
  EXPECT_EQ(spans[0]["status"],
            json({{"code", 2}, {"message", "FIELD_INVALID"}}));
  EXPECT_THAT(lines[0].dump(), testing::Not(testing::HasSubstr("client's")));
}

// FIPS 180-4 by OpenSSL's other interface.
std::string FirstHex(const std::string& text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         digest);
  return absl::BytesToHexString(
             std::string(reinterpret_cast<char*>(digest), sizeof(digest)))
      .substr(0, 16);
}

TEST(HashOf, IsTheBeginningOfTheSha256OfTheNamesText) {
  EXPECT_EQ(HashOf(SessionName("alice", "verona")), FirstHex("alice/verona"));
  EXPECT_EQ(HashOf(SessionName("default", "verona")), FirstHex("verona"));
  EXPECT_EQ(HashOf(SessionName("alice", "")), "");
}

constexpr absl::Duration kBegin = absl::Hours(1);

absl::Duration At(int seconds) { return kBegin + absl::Seconds(seconds); }

TEST(TurnTimes, OfNoTurnAreZero) {
  const TurnTimes times;
  EXPECT_EQ(times.Queue(), absl::ZeroDuration());
  EXPECT_EQ(times.Run(), absl::ZeroDuration());
}

TEST(TurnTimes, AreThoseBetweenItsBorders) {
  const TurnTimes times = {At(0), At(1), At(3), At(7)};
  EXPECT_EQ(times.Queue(), absl::Seconds(1));
  EXPECT_EQ(times.Prefill(), absl::Seconds(2));
  EXPECT_EQ(times.Decode(), absl::Seconds(4));
  EXPECT_EQ(times.Run(), absl::Seconds(6));
}

TEST(TurnTimes, OfATurnThatBrokeOffGoAsFarAsItCame) {
  const TurnTimes waited = {At(0), std::nullopt, std::nullopt, At(5)};
  EXPECT_EQ(waited.Queue(), absl::Seconds(5));
  EXPECT_EQ(waited.Run(), absl::ZeroDuration());
  const TurnTimes fed = {At(0), At(1), std::nullopt, At(5)};
  EXPECT_EQ(fed.Queue(), absl::Seconds(1));
  EXPECT_EQ(fed.Prefill(), absl::Seconds(4));
  EXPECT_EQ(fed.Decode(), absl::ZeroDuration());
}

TEST(EndWell, TakesTheSchedulersTimes) {
  TurnTimes times = {At(10), At(20), std::nullopt, std::nullopt};
  EndWell({1.5, 2, 0.25}, &times);
  EXPECT_EQ(times.queued, At(10));
  EXPECT_EQ(times.Queue(), absl::Milliseconds(1500));
  EXPECT_EQ(times.Prefill(), absl::Seconds(2));
  EXPECT_EQ(times.Decode(), absl::Milliseconds(250));
}

TEST(EndWell, OfATurnThatIsToldAgainNothingRan) {
  TurnTimes times = {At(10), std::nullopt, std::nullopt, std::nullopt};
  EndWell({1.5, 2, 0.25}, &times);
  EXPECT_FALSE(times.queued.has_value());
  EXPECT_EQ(times.Queue() + times.Run(), absl::ZeroDuration());
}

}  // namespace

}  // namespace txl
