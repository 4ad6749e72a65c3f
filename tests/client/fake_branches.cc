// FakeService's sessions that are forked, rewound, exported and imported.

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tests/client/fake_service.h"

namespace txl::testing {
namespace {

constexpr char kMagic[] = "FAKE";  // begins a file; the tokens' bytes follow

grpc::Status NoSuchSession() {
  return FakeError(grpc::StatusCode::NOT_FOUND, "no such session",
                   "SESSION_UNKNOWN");
}

}  // namespace

grpc::Status FakeService::Add(const std::string& id,
                              std::vector<uint32_t> tokens,
                              v1::Session* session) {
  const std::string name =
      id.empty() ? absl::StrCat("made-", calls_.size()) : id;
  const auto position = static_cast<int64_t>(tokens.size());
  if (!sessions_.emplace(name, std::move(tokens)).second) {
    return FakeError(grpc::StatusCode::ALREADY_EXISTS, "in use",
                     "SESSION_EXISTS");
  }
  session->set_session_id(name);
  session->set_position(position);
  return grpc::Status::OK;
}

grpc::Status FakeService::ForkSession(grpc::ServerContext* context,
                                      const v1::ForkSessionRequest* request,
                                      v1::ForkSessionResponse* response) {
  grpc::Status status = See("ForkSession", context);
  if (!status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  const auto parent = sessions_.find(request->session_id());
  if (parent == sessions_.end()) return NoSuchSession();
  std::vector<uint32_t> tokens = parent->second;
  if (request->has_position()) tokens.resize(request->position());
  return Add(request->new_session_id(), std::move(tokens),
             response->mutable_session());
}

grpc::Status FakeService::RewindSession(grpc::ServerContext* context,
                                        const v1::RewindSessionRequest* request,
                                        v1::RewindSessionResponse* response) {
  grpc::Status status = See("RewindSession", context);
  if (!status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  const auto session = sessions_.find(request->session_id());
  if (session == sessions_.end()) return NoSuchSession();
  if (request->position() > static_cast<int64_t>(session->second.size())) {
    return FakeError(grpc::StatusCode::INVALID_ARGUMENT, "too far",
                     "FIELD_INVALID", "position");
  }
  session->second.resize(request->position());
  response->mutable_session()->set_session_id(session->first);
  response->mutable_session()->set_position(request->position());
  return status;
}

grpc::Status FakeService::ExportSession(
    grpc::ServerContext* context, const v1::ExportSessionRequest* request,
    grpc::ServerWriter<v1::ExportSessionResponse>* writer) {
  grpc::Status status = See("ExportSession", context);
  std::string file = kMagic;
  {
    absl::MutexLock lock(&mutex_);
    const auto session = sessions_.find(request->session_id());
    if (session == sessions_.end()) return NoSuchSession();
    for (const uint32_t id : session->second) {
      file.push_back(static_cast<char>(id));
    }
  }
  for (size_t at = 0; at < file.size(); at += 3) {
    v1::ExportSessionResponse response;
    response.set_chunk(file.substr(at, 3));
    writer->Write(response);
  }
  return status;  // an error comes behind the first bytes
}

grpc::Status FakeService::ImportSession(
    grpc::ServerContext* context,
    grpc::ServerReader<v1::ImportSessionRequest>* reader,
    v1::ImportSessionResponse* response) {
  grpc::Status status = See("ImportSession", context);
  if (!status.ok()) return status;
  std::string id;
  std::string file;
  v1::ImportSessionRequest request;
  while (reader->Read(&request)) {
    if (!request.session_id().empty()) id = request.session_id();
    import_chunk_sizes.push_back(request.chunk().size());
    file += request.chunk();
  }
  absl::string_view bytes = file;
  if (!absl::ConsumePrefix(&bytes, kMagic)) {
    return FakeError(grpc::StatusCode::INVALID_ARGUMENT, "no export",
                     "FIELD_INVALID", "chunk");
  }
  std::vector<uint32_t> tokens;
  for (const char byte : bytes) {
    tokens.push_back(static_cast<unsigned char>(byte));
  }
  absl::MutexLock lock(&mutex_);
  return Add(id, std::move(tokens), response->mutable_session());
}

}  // namespace txl::testing
