#include "server/rpc/raw_message.h"

#include <google/protobuf/io/zero_copy_stream.h>
#include <grpc/grpc.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include <vector>

#include "server/base/error.h"

// gRPC's library has it, its headers do not (src/core/lib/surface/
// call_test_only.h): another version may lack it.
[[gnu::weak]] uint32_t grpc_call_test_only_get_message_flags(grpc_call* call);

namespace txl {
namespace {

// This flag of a message is likewise in no header.
constexpr uint32_t kCompressed = 0x80000000;

}  // namespace

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

bool IsMarkedCompressed(grpc_call* call) {
  if (grpc_call_test_only_get_message_flags == nullptr) return false;
  return (grpc_call_test_only_get_message_flags(call) & kCompressed) != 0;
}

grpc::ByteBuffer SerializeMessage(
    const google::protobuf::MessageLite& message) {
  grpc::Slice slice(message.ByteSizeLong());
  message.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace txl
