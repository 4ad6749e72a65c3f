#pragma once

// Bytes of the wire <-> messages. Methods are registered raw, because gRPC's
// generated handlers answer bytes that do not parse with UNIMPLEMENTED.

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/status/status.h"

namespace txl {

// InvalidArgument, MALFORMED_MESSAGE when the bytes do not parse (a string that
// is not UTF-8 does not).
absl::Status ParseMessage(const grpc::ByteBuffer& bytes,
                          google::protobuf::MessageLite* message);

grpc::ByteBuffer SerializeMessage(const google::protobuf::MessageLite& message);

}  // namespace txl
