#pragma once

// Tells whether two requests of one request_id are the same request.

#include <google/protobuf/message_lite.h>

#include <string>

namespace txl {

// SHA-256 of the message's type and of everything that it says: 32 bytes.
std::string RequestDigest(const google::protobuf::MessageLite& request);

}  // namespace txl
