#pragma once

// Tells whether two requests of one request_id are the same request.

#include <google/protobuf/message_lite.h>

#include <string>

#include "txl/v1/generation_service.pb.h"

namespace txl {

// SHA-256 of the message's type and of everything that it says: 32 bytes.
std::string RequestDigest(const google::protobuf::MessageLite& request);
// Of everything but `received`, which each retry fills in anew.
std::string RequestDigest(const v1::GenerateRequest& request);

}  // namespace txl
