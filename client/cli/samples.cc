#include "client/cli/samples.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/long_text.h"
#include "client/cli/output.h"

namespace txl::cli {
namespace {

// The session that is deleted with it, unless it has none. Deleting takes no
// canceller: nothing is left behind.
class OwnSession {
 public:
  OwnSession(Client* client, CallOptions options)
      : client_(client), options_(options) {
    options_.canceller = nullptr;
  }
  ~OwnSession() {
    if (!id_.empty()) End().IgnoreError();
  }
  OwnSession(const OwnSession&) = delete;
  OwnSession& operator=(const OwnSession&) = delete;

  void Take(const v1::Session& session) { id_ = session.session_id(); }
  const std::string& id() const { return id_; }
  absl::Status End() {
    v1::DeleteSessionRequest request;
    request.set_session_id(std::exchange(id_, ""));
    return client_->DeleteSession(request, options_).status();
  }

 private:
  Client* client_;
  CallOptions options_;
  std::string id_;
};

absl::Status Fork(Client& client, const std::string& of,
                  const CallOptions& options, OwnSession* session) {
  v1::ForkSessionRequest request;
  request.set_session_id(of);
  const auto response = client.ForkSession(request, options);
  if (response.ok()) session->Take(response->session());
  return response.status();
}

// The session that the prompt is fed to.
absl::Status MakeBase(Client& client, const std::string& session_id,
                      const CallOptions& options, OwnSession* base) {
  if (!session_id.empty()) return Fork(client, session_id, options, base);
  const auto response = client.CreateSession({}, options);
  if (response.ok()) base->Take(response->session());
  return response.status();
}

absl::Status Feed(Client& client, const std::string& session_id,
                  const std::vector<uint32_t>& ids,
                  const CallOptions& options) {
  const auto model = client.GetModel(options);
  if (!model.ok()) return model.status();
  const auto most = static_cast<size_t>(
      std::max<int64_t>(model->limits().max_prompt_tokens(), 1));
  for (size_t begin = 0; begin < ids.size(); begin += most) {
    const size_t end = std::min(begin + most, ids.size());
    v1::AppendTokensRequest request;
    request.set_session_id(session_id);
    request.mutable_tokens()->mutable_ids()->Assign(ids.begin() + begin,
                                                    ids.begin() + end);
    const absl::Status status = client.AppendTokens(request, options).status();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

std::string SampleJson(int64_t sample, const v1::GenerateResponse& response) {
  const std::string json = ToJson(response);
  const std::string head = absl::StrCat("{\"sample\":", sample);
  if (json == "{}") return head + "}\n";
  return absl::StrCat(head, ",", json.substr(1), "\n");
}

absl::Status GenerateSamples(
    Client& client, const v1::GenerateRequest& request, int64_t count,
    const CallOptions& options,
    absl::FunctionRef<absl::Status(int64_t, const v1::GenerateRequest&)> turn) {
  const auto ids = PromptIds(client, request, options);
  if (!ids.ok()) return ids.status();
  if (request.has_text() && ids->empty()) {
    return absl::InvalidArgumentError("the prompt holds no token");
  }
  OwnSession base(&client, options);
  absl::Status status = MakeBase(client, request.session_id(), options, &base);
  if (status.ok()) status = Feed(client, base.id(), *ids, options);
  for (int64_t i = 0; i < count && status.ok(); ++i) {
    OwnSession branch(&client, options);
    status = Fork(client, base.id(), options, &branch);
    if (!status.ok()) break;
    v1::GenerateRequest one = request;
    one.clear_prompt();
    one.set_session_id(branch.id());
    if (request.sampling().has_seed()) {
      one.mutable_sampling()->set_seed(request.sampling().seed() +
                                       static_cast<uint64_t>(i));
    }
    status = turn(i, one);
    status.Update(branch.End());
  }
  if (!base.id().empty()) status.Update(base.End());
  return status;
}

}  // namespace txl::cli
