#include "server/rpc/raw_message.h"

#include <google/protobuf/io/zero_copy_stream.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include <vector>

#include "server/base/error.h"

namespace txl {

absl::Status ParseMessage(const grpc::ByteBuffer& bytes,
                          google::protobuf::MessageLite* message) {
  grpc::ByteBuffer copy(bytes);  // shares the slices
  grpc::ProtoBufferReader reader(&copy);
  if (reader.status().ok() && message->ParseFromZeroCopyStream(&reader)) {
    return absl::OkStatus();
  }
  return MalformedError(
      "the message does not parse, or a text is not valid UTF-8");
}

absl::Status MalformedError(absl::string_view message) {
  ErrorDetails details;
  details.reason = "MALFORMED_MESSAGE";
  return MakeError(absl::StatusCode::kInvalidArgument, message, details);
}

grpc::ByteBuffer SerializeMessage(
    const google::protobuf::MessageLite& message) {
  grpc::Slice slice(message.ByteSizeLong());
  message.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace txl
