#pragma once

// Bytes of the wire <-> messages. Calls come as bytes (api_service.h), so that
// what does not parse is INVALID_ARGUMENT.

#include <google/protobuf/message_lite.h>
#include <grpc/grpc.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/status/status.h"

namespace txl {

// InvalidArgument, MALFORMED_MESSAGE when the bytes do not parse (a string that
// is not UTF-8 does not).
absl::Status ParseMessage(const grpc::ByteBuffer& bytes,
                          google::protobuf::MessageLite* message);

// Whether the last message that came in a call of gRPC's core has the flag of a
// compressed one. gRPC hands on such a message as it is where the call names no
// compression. False where gRPC's library does not tell.
bool IsMarkedCompressed(grpc_call* call);

grpc::ByteBuffer SerializeMessage(const google::protobuf::MessageLite& message);

}  // namespace txl
