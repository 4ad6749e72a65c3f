#include "server/rpc/open_call.h"

#include <grpcpp/support/slice.h>

#include <string>
#include <vector>

#include "tests/server/api/convert_fixture.h"
#include "txl/v1/generation_service.pb.h"

namespace txl {
namespace {

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

}  // namespace

}  // namespace txl
