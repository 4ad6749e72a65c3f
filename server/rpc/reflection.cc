#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/base/byte_budget.h"
#include "server/rpc/grpc_server.h"
#include "txl/v1/generation_service.pb.h"
#include "txl/v1/model_service.pb.h"
#include "txl/v1/session_service.pb.h"

namespace txl {
namespace {

namespace reflection = grpc::reflection::v1alpha;
using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;

// What a call takes: the descriptors of a file with all that it imports.
constexpr int64_t kAnswerBytes = 128 << 10;

// Of a message that each one's file has.
std::vector<const google::protobuf::ServiceDescriptor*> Services() {
  return {
      v1::GenerateRequest::descriptor()->file()->service(0),
      v1::CreateSessionRequest::descriptor()->file()->service(0),
      v1::GetModelRequest::descriptor()->file()->service(0),
      grpc::health::v1::HealthCheckRequest::descriptor()->file()->service(0),
      reflection::ServerReflectionRequest::descriptor()->file()->service(0)};
}

void AddFile(const FileDescriptor& file, std::set<const FileDescriptor*>& added,
             reflection::FileDescriptorResponse* response) {
  if (!added.insert(&file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  response->add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) {
    AddFile(*file.dependency(i), added, response);
  }
}

void AnswerFile(const FileDescriptor* file,
                reflection::ServerReflectionResponse* response) {
  if (file == nullptr) {
    auto* error = response->mutable_error_response();
    error->set_error_code(static_cast<int>(absl::StatusCode::kNotFound));
    error->set_error_message("there is no such file, symbol or extension");
    return;
  }
  std::set<const FileDescriptor*> added;
  AddFile(*file, added, response->mutable_file_descriptor_response());
}

// The API has no extensions: whoever asks for one is told so.
reflection::ServerReflectionResponse Answer(
    const reflection::ServerReflectionRequest& request) {
  using Request = reflection::ServerReflectionRequest;
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  reflection::ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case Request::kListServices:
      for (const auto* service : Services()) {
        response.mutable_list_services_response()->add_service()->set_name(
            service->full_name());
      }
      break;
    case Request::kFileByFilename:
      AnswerFile(pool.FindFileByName(request.file_by_filename()), &response);
      break;
    case Request::kFileContainingSymbol:
      AnswerFile(
          pool.FindFileContainingSymbol(request.file_containing_symbol()),
          &response);
      break;
    default:
      AnswerFile(nullptr, &response);
  }
  return response;
}

// Answers a message, reads the next one.
class ReflectionRun final : public CallEvents,
                            public std::enable_shared_from_this<ReflectionRun> {
 public:
  explicit ReflectionRun(std::shared_ptr<ApiCall> call)
      : call_(std::move(call)) {}

  void Start() {
    absl::StatusOr<ByteHold> hold = call_->desk().HoldAnswer(kAnswerBytes);
    if (!hold.ok()) return call_->End(hold.status());
    const auto request = call_->Read<reflection::ServerReflectionRequest>();
    if (!request.ok()) return call_->End(request.status());
    call_->HandOver(shared_from_this(), *std::move(hold));
    call_->WritePiece(Answer(**request));
  }

  // CallEvents.
  void OnWriteDone(bool ok) override {
    if (!ok) return call_->End(absl::CancelledError("the client has left"));
    call_->ReadMore([self = shared_from_this()](bool more) {
      more ? self->Next() : self->call_->End(absl::OkStatus());
    });
  }
  void OnCancel() override {}  // the write or the read that runs ends
  void OnDone() override {}

 private:
  void Next() {
    const auto request = call_->Read<reflection::ServerReflectionRequest>();
    request.ok() ? call_->WritePiece(Answer(**request))
                 : call_->End(request.status());
  }

  const std::shared_ptr<ApiCall> call_;
};

void Reflect(const ServiceContext&, const std::shared_ptr<ApiCall>& call) {
  std::make_shared<ReflectionRun>(call)->Start();
}

constexpr ApiMethod kReflection = {
    "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    Admission::kServing, Reflect, kAnyKey, true};

}  // namespace

const ApiMethod& ReflectionMethod() { return kReflection; }

}  // namespace txl
