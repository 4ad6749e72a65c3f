// The small parts: callback thread, life cycle, raw messages, access log.

#include <gmock/gmock.h>
#include <grpcpp/support/slice.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "server/base/log.h"
#include "server/rpc/call_context.h"
#include "server/rpc/call_record.h"
#include "server/rpc/lifecycle.h"
#include "server/rpc/raw_message.h"
#include "tests/fakes/fake_clock.h"
#include "tests/server/rpc/convert_fixture.h"
#include "txl/v1/generation_service.pb.h"

namespace txl {
namespace {

TEST(Lifecycle, RefusesUntilReadyAndOnceDraining) {
  Lifecycle lifecycle;
  EXPECT_EQ(Refusal(lifecycle.CheckServing()), "UNAVAILABLE NOT_READY");
  lifecycle.SetReady();
  EXPECT_TRUE(lifecycle.CheckServing().ok());
  lifecycle.SetDraining();
  EXPECT_EQ(Refusal(lifecycle.CheckServing()), "UNAVAILABLE DRAINING");
}

TEST(Lifecycle, NeverLeavesDraining) {
  Lifecycle lifecycle;
  lifecycle.SetDraining();
  lifecycle.SetReady();
  EXPECT_EQ(lifecycle.phase(), ServerPhase::kDraining);
}

grpc::ByteBuffer Bytes(const std::vector<std::string>& parts) {
  std::vector<grpc::Slice> slices(parts.begin(), parts.end());
  return grpc::ByteBuffer(slices.data(), slices.size());
}

TEST(ParseMessage, ReadsWhatSerializeMessageWrites) {
  v1::GenerateRequest request;
  request.set_session_id("s");
  request.mutable_stop()->set_max_tokens(3);
  v1::GenerateRequest read;
  ASSERT_TRUE(ParseMessage(SerializeMessage(request), &read).ok());
  EXPECT_EQ(read.SerializeAsString(), request.SerializeAsString());
}

TEST(ParseMessage, ReadsAMessageInPieces) {
  v1::GenerateRequest request;
  request.set_session_id("session");
  const std::string bytes = request.SerializeAsString();
  v1::GenerateRequest read;
  ASSERT_TRUE(
      ParseMessage(Bytes({bytes.substr(0, 3), bytes.substr(3)}), &read).ok());
  EXPECT_EQ(read.session_id(), "session");
}

TEST(ParseMessage, ReadsNoBytesAsAnEmptyMessage) {
  v1::GenerateRequest read;
  EXPECT_TRUE(
      ParseMessage(SerializeMessage(v1::GenerateRequest()), &read).ok());
}

TEST(ParseMessage, RefusesBytesThatDoNotParse) {
  for (const std::string& bytes :
       {std::string("\x0a\x05"
                    "ab"),
        std::string("\xff\xff\xff\xff"),
        std::string("\x0a\x02\xc3\x28")}) {  // truncated, no tag, not UTF-8
    v1::GenerateRequest read;
    EXPECT_EQ(Refusal(ParseMessage(Bytes({bytes}), &read)),
              "INVALID_ARGUMENT MALFORMED_MESSAGE");
  }
}

TEST(EndRecord, WritesOneLineWithNeitherTextNorIds) {
  FakeClock clock;
  Metrics metrics;
  CallRecord record = StartRecord("txl.v1.S/M", &clock, &metrics);
  record.named_session = true;
  record.prompt_tokens = 3;
  record.generated_tokens = 4;
  clock.Advance(absl::Milliseconds(1500));
  LogCapture capture;
  EndRecord(record, FieldError("f", "m"));
  ASSERT_EQ(capture.lines().size(), 1u);
  const auto line = nlohmann::json::parse(capture.lines()[0]);
  EXPECT_EQ(line["severity"], "INFO");
  EXPECT_EQ(line["fields"], nlohmann::json({{"method", "txl.v1.S/M"},
                                            {"status", "INVALID_ARGUMENT"},
                                            {"reason", "FIELD_INVALID"},
                                            {"named_session", true},
                                            {"prompt_tokens", 3},
                                            {"generated_tokens", 4},
                                            {"seconds", 1.5}}));
}

TEST(EndRecord, CountsTheCallByMethodAndStatus) {
  FakeClock clock;
  Metrics metrics;
  LogCapture capture;
  EndRecord(StartRecord("S/M", &clock, &metrics), absl::OkStatus());
  EndRecord(StartRecord("S/M", &clock, &metrics), FieldError("f", "m"));
  EndRecord(StartRecord("S/M", &clock, &metrics), FieldError("f", "m"));
  const Snapshot s = metrics.Get();
  EXPECT_EQ(s.calls.size(), 2u);
  EXPECT_EQ(s.calls.at({"S/M", absl::StatusCode::kOk}), 1);
  EXPECT_EQ(s.calls.at({"S/M", absl::StatusCode::kInvalidArgument}), 2);
}

TEST(EndRecord, ShowsTheOperatorWhatClientsDoNotSee) {
  FakeClock clock;
  Metrics metrics;
  LogCapture capture;
  EndRecord(StartRecord("m", &clock, &metrics),
            absl::InternalError("the cause"));
  const auto line = nlohmann::json::parse(capture.lines()[0]);
  EXPECT_EQ(line["severity"], "ERROR");
  EXPECT_EQ(line["fields"]["error"], "the cause");
}

TEST(CancelReason, IsTheDeadlineOnceItHasPassed) {
  FakeClock clock;
  const absl::Duration deadline = clock.Monotonic() + absl::Seconds(1);
  EXPECT_EQ(CancelReason(std::nullopt, &clock), CancelToken::Why::kCancelled);
  EXPECT_EQ(CancelReason(deadline, &clock), CancelToken::Why::kCancelled);
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(CancelReason(deadline, &clock), CancelToken::Why::kDeadline);
}

}  // namespace
}  // namespace txl
