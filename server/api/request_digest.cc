#include "server/api/request_digest.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <openssl/sha.h>

namespace txl {

std::string RequestDigest(const google::protobuf::MessageLite& request) {
  std::string bytes = request.GetTypeName() + '\0';
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    // Else the order of a map's entries would be any.
    out.SetSerializationDeterministic(true);
    request.SerializeToCodedStream(&out);
  }
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string RequestDigest(const v1::GenerateRequest& request) {
  const google::protobuf::MessageLite& message = request;
  if (!request.has_received() && request.priority() == 0) {
    return RequestDigest(message);
  }
  v1::GenerateRequest rest = request;
  rest.clear_received();
  rest.clear_priority();
  return RequestDigest(static_cast<const google::protobuf::MessageLite&>(rest));
}

}  // namespace txl
