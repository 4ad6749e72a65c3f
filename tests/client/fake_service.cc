#include "tests/client/fake_service.h"

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace txl::testing {

grpc::Status FakeError(grpc::StatusCode code, const std::string& message,
                       const std::string& reason, const std::string& field,
                       std::optional<int64_t> retry_milliseconds) {
  google::rpc::Status status;
  status.set_code(code);
  status.set_message(message);
  google::rpc::ErrorInfo info;
  info.set_domain("txl.v1");
  info.set_reason(reason);
  info.mutable_metadata()->insert({"position", "7"});
  status.add_details()->PackFrom(info);
  if (!field.empty()) {
    google::rpc::BadRequest bad_request;
    bad_request.add_field_violations()->set_field(field);
    status.add_details()->PackFrom(bad_request);
  }
  if (retry_milliseconds.has_value()) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(*retry_milliseconds / 1000);
    retry.mutable_retry_delay()->set_nanos(*retry_milliseconds % 1000 *
                                           1'000'000);
    status.add_details()->PackFrom(retry);
  }
  return grpc::Status(code, message, status.SerializeAsString());
}

v1::GenerateResponse StartedEvent(int64_t position, int64_t prompt_tokens) {
  v1::GenerateResponse event;
  event.mutable_started()->set_position(position);
  event.mutable_started()->set_prompt_token_count(prompt_tokens);
  return event;
}

v1::GenerateResponse TokenEvent(int32_t index, char character) {
  v1::GenerateResponse event;
  event.mutable_token()->set_index(index);
  event.mutable_token()->set_token_id(static_cast<unsigned char>(character));
  event.mutable_token()->set_text(std::string(1, character));
  event.mutable_token()->set_logprob(-0.5f);
  return event;
}

v1::GenerateResponse FinishedEvent(int64_t position, int64_t prompt_tokens,
                                   int64_t generated_tokens) {
  v1::GenerateResponse event;
  v1::Finished* finished = event.mutable_finished();
  finished->set_reason(v1::FINISH_REASON_MAX_TOKENS);
  finished->set_position(position);
  finished->mutable_usage()->set_prompt_tokens(prompt_tokens);
  finished->mutable_usage()->set_generated_tokens(generated_tokens);
  return event;
}

std::vector<v1::GenerateResponse> TurnEvents(int64_t prompt_tokens,
                                             const std::string& text) {
  const auto count = static_cast<int32_t>(text.size());
  std::vector<v1::GenerateResponse> events = {StartedEvent(0, prompt_tokens)};
  for (int32_t i = 0; i < count; ++i) {
    events.push_back(TokenEvent(i, text[i]));
  }
  events.push_back(FinishedEvent(prompt_tokens + count, prompt_tokens, count));
  return events;
}

grpc::Status WaitUntilCancelled(grpc::ServerContext* context) {
  while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
  return grpc::Status(grpc::StatusCode::CANCELLED, "the client left");
}

std::vector<SeenCall> FakeService::calls() const {
  absl::MutexLock lock(&mutex_);
  return calls_;
}

std::vector<v1::GenerateRequest> FakeService::generate_requests() const {
  absl::MutexLock lock(&mutex_);
  return generate_requests_;
}

std::map<std::string, std::vector<uint32_t>> FakeService::sessions() const {
  absl::MutexLock lock(&mutex_);
  return sessions_;
}

std::vector<int64_t> FakeService::append_sizes() const {
  absl::MutexLock lock(&mutex_);
  return append_sizes_;
}

grpc::Status FakeService::See(const std::string& method,
                              grpc::ServerContext* context,
                              v1::UnknownText unknown) {
  SeenCall call{method, std::nullopt, unknown};
  const auto& metadata = context->client_metadata();
  if (auto it = metadata.find("x-txl-session"); it != metadata.end()) {
    call.session_header = std::string(it->second.data(), it->second.size());
  }
  absl::MutexLock lock(&mutex_);
  calls_.push_back(std::move(call));
  if (denied.count(method) > 0) {
    return FakeError(grpc::StatusCode::PERMISSION_DENIED, "not for this role",
                     "PERMISSION_DENIED");
  }
  return unary_status;
}

grpc::Status FakeService::Generate(grpc::ServerContext* context,
                                   const v1::GenerateRequest* request,
                                   Writer* writer) {
  (void)See("Generate", context, request->unknown());
  {
    absl::MutexLock lock(&mutex_);
    generate_requests_.push_back(*request);
  }
  if (on_generate) return on_generate(context, *request, writer);
  const int64_t prompt = request->has_text()
                             ? static_cast<int64_t>(request->text().size())
                             : request->tokens().ids_size();
  if (prompt > max_prompt_tokens) {
    return FakeError(grpc::StatusCode::INVALID_ARGUMENT, "too many tokens",
                     "OVER_LIMIT", request->has_text() ? "text" : "tokens.ids");
  }
  const grpc::Status fed = Feed(*request, prompt);
  if (!fed.ok()) return fed;
  for (const auto& event : TurnEvents(prompt, "Hello")) writer->Write(event);
  return grpc::Status::OK;
}

grpc::Status FakeService::Feed(const v1::GenerateRequest& request,
                               int64_t prompt) {
  absl::MutexLock lock(&mutex_);
  const auto session = sessions_.find(request.session_id());
  if (session == sessions_.end()) return grpc::Status::OK;
  const std::string& name = request.request_id();
  const auto known = turns_.find(name);
  if (!name.empty() && known != turns_.end()) {
    if (known->second == request.SerializeAsString()) return grpc::Status::OK;
    return FakeError(grpc::StatusCode::INVALID_ARGUMENT, "another request",
                     "FIELD_INVALID", "request_id");
  }
  std::vector<uint32_t>& tokens = session->second;
  if (request.has_expected_position() &&
      request.expected_position() != static_cast<int64_t>(tokens.size())) {
    return FakeError(grpc::StatusCode::ABORTED, "another position",
                     "POSITION_MISMATCH");
  }
  turns_[name] = request.SerializeAsString();
  tokens.resize(tokens.size() + prompt + 5, 'x');
  return grpc::Status::OK;
}

grpc::Status FakeService::Score(grpc::ServerContext* context,
                                const v1::ScoreRequest* request,
                                v1::ScoreResponse* response) {
  for (const uint32_t id : request->tokens().ids()) {
    v1::ScoredToken* token = response->add_tokens();
    token->set_token_id(id);
    // Without a context nothing predicts the first one.
    if (response->tokens_size() > 1 || !request->session_id().empty()) {
      token->set_logprob(Logprob(id));
    }
  }
  return See("Score", context);
}

grpc::Status FakeService::ScoreAlternatives(
    grpc::ServerContext* context, const v1::ScoreAlternativesRequest* request,
    v1::ScoreAlternativesResponse* response) {
  for (const v1::Alternative& alternative : request->alternatives()) {
    v1::AlternativeScore* score = response->add_scores();
    double sum = 0;
    for (const unsigned char byte : alternative.text()) sum += Logprob(byte);
    score->set_sum_logprob(sum);
    score->set_token_count(static_cast<int64_t>(alternative.text().size()));
  }
  return See("ScoreAlternatives", context, request->unknown());
}

grpc::Status FakeService::CreateSession(grpc::ServerContext* context,
                                        const v1::CreateSessionRequest* request,
                                        v1::CreateSessionResponse* response) {
  grpc::Status status = See("CreateSession", context);
  if (!status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  std::string id = request->session_id();
  if (id.empty()) id = absl::StrCat("made-", calls_.size());
  if (!sessions_.emplace(id, std::vector<uint32_t>()).second) {
    return FakeError(grpc::StatusCode::ALREADY_EXISTS, "in use",
                     "SESSION_EXISTS");
  }
  response->mutable_session()->set_session_id(id);
  *response->mutable_session()->mutable_ttl() = request->ttl();
  response->mutable_session()->set_state(v1::SESSION_STATE_IDLE);
  return status;
}

grpc::Status FakeService::GetSession(grpc::ServerContext* context,
                                     const v1::GetSessionRequest* request,
                                     v1::GetSessionResponse* response) {
  grpc::Status status = See("GetSession", context);
  absl::MutexLock lock(&mutex_);
  const auto it = sessions_.find(request->session_id());
  if (it == sessions_.end()) {
    return FakeError(grpc::StatusCode::NOT_FOUND, "no such session",
                     "SESSION_UNKNOWN");
  }
  response->mutable_session()->set_session_id(it->first);
  response->mutable_session()->set_position(
      static_cast<int64_t>(it->second.size()));
  if (request->include_tokens()) {
    // Pages of three, so that clients have to ask again.
    const size_t from =
        request->page_token().empty() ? 0 : std::stoul(request->page_token());
    const size_t end = std::min(from + 3, it->second.size());
    response->mutable_token_ids()->Assign(it->second.begin() + from,
                                          it->second.begin() + end);
    response->set_text("[" + std::to_string(from) + "]");
    if (end < it->second.size()) {
      response->set_next_page_token(std::to_string(end));
    }
  }
  return status;
}

grpc::Status FakeService::ListSessions(grpc::ServerContext* context,
                                       const v1::ListSessionsRequest* request,
                                       v1::ListSessionsResponse* response) {
  grpc::Status status = See("ListSessions", context);
  absl::MutexLock lock(&mutex_);
  auto it = sessions_.upper_bound(request->page_token());
  if (it == sessions_.end()) return status;
  v1::Session* session = response->add_sessions();
  session->set_session_id(it->first);
  session->set_position(static_cast<int64_t>(it->second.size()));
  if (std::next(it) != sessions_.end()) {
    response->set_next_page_token(it->first);
  }
  return status;
}

grpc::Status FakeService::DeleteSession(grpc::ServerContext* context,
                                        const v1::DeleteSessionRequest* request,
                                        v1::DeleteSessionResponse*) {
  grpc::Status status = See("DeleteSession", context);
  absl::MutexLock lock(&mutex_);
  if (sessions_.erase(request->session_id()) == 0) {
    return FakeError(grpc::StatusCode::NOT_FOUND, "no such session",
                     "SESSION_UNKNOWN");
  }
  return status;
}

grpc::Status FakeService::AppendTokens(grpc::ServerContext* context,
                                       const v1::AppendTokensRequest* request,
                                       v1::AppendTokensResponse* response) {
  grpc::Status status = See("AppendTokens", context);
  if (!status.ok()) return status;
  if (on_append) return on_append(context);
  if (request->tokens().ids_size() > max_prompt_tokens) {
    return FakeError(grpc::StatusCode::INVALID_ARGUMENT, "too many tokens",
                     "OVER_LIMIT", "tokens.ids");
  }
  absl::MutexLock lock(&mutex_);
  if (!request->request_id().empty() &&
      !turns_.emplace(request->request_id(), "").second) {
    return FakeError(grpc::StatusCode::ABORTED, "the turn is done",
                     "REPLAY_EVICTED");
  }
  append_sizes_.push_back(request->tokens().ids_size());
  std::vector<uint32_t>& tokens = sessions_[request->session_id()];
  double sum = 0;
  for (const uint32_t id : request->tokens().ids()) {
    v1::ScoredToken* scored = response->add_scored();
    scored->set_token_id(id);
    if (!tokens.empty()) {
      scored->set_logprob(Logprob(id));
      sum += Logprob(id);
    }
    tokens.push_back(id);
  }
  response->set_position(static_cast<int64_t>(tokens.size()));
  response->set_sum_logprob(sum);
  return status;
}

grpc::Status FakeService::GetModel(grpc::ServerContext* context,
                                   const v1::GetModelRequest*,
                                   v1::GetModelResponse* response) {
  response->set_name("fake");
  response->set_fingerprint("0123456789abcdef");
  response->set_vocabulary_size(256);
  response->set_vocabulary_kind("bytes");
  response->mutable_limits()->set_max_prompt_tokens(max_prompt_tokens);
  response->mutable_limits()->set_max_prompt_bytes(max_prompt_bytes);
  response->mutable_default_sampling()->set_temperature(1);
  response->mutable_default_sampling()->set_top_p(0.9);
  response->mutable_default_stop()->set_max_tokens(128);
  return See("GetModel", context);
}

grpc::Status FakeService::GetServerStatus(
    grpc::ServerContext* context, const v1::GetServerStatusRequest*,
    v1::GetServerStatusResponse* response) {
  response->set_state(state);
  response->set_rows_decode(30);
  response->set_steps_with_decode(20);
  {
    absl::MutexLock lock(&mutex_);
    (*response->mutable_turns_finished())["OK"] = 3 + statuses_ * turns_ok_step;
    response->set_tokens_delivered(statuses_ * tokens_step);
    ++statuses_;
  }
  if (on_status) on_status(response);
  return See("GetServerStatus", context);
}

grpc::Status FakeService::Tokenize(grpc::ServerContext* context,
                                   const v1::TokenizeRequest* request,
                                   v1::TokenizeResponse* response) {
  for (const auto& [what, count] : left_out) {
    v1::LeftOut* part = response->add_left_out();
    part->set_what(what);
    part->set_count(count);
  }
  for (const unsigned char byte : request->midi()) {
    response->add_token_ids(byte);
  }
  if (static_cast<int64_t>(request->text().size()) >
      std::min(max_prompt_bytes, max_prompt_tokens)) {
    return FakeError(grpc::StatusCode::INVALID_ARGUMENT, "too long",
                     "OVER_LIMIT", "text");
  }
  for (const unsigned char byte : request->text()) {
    response->add_token_ids(byte);
  }
  return See("Tokenize", context, request->unknown());
}

grpc::Status FakeService::Detokenize(grpc::ServerContext* context,
                                     const v1::DetokenizeRequest* request,
                                     v1::DetokenizeResponse* response) {
  for (const uint32_t id : request->token_ids()) {
    response->mutable_text()->push_back(static_cast<char>(id));
  }
  return See("Detokenize", context);
}

FakeServer::FakeServer(const std::string& address) : address_(address) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(
      static_cast<v1::GenerationService::Service*>(&service_));
  builder.RegisterService(static_cast<v1::SessionService::Service*>(&service_));
  builder.RegisterService(static_cast<v1::ModelService::Service*>(&service_));
  server_ = builder.BuildAndStart();
  if (absl::EndsWith(address, ":0")) {
    address_ = absl::StrCat(absl::StripSuffix(address, "0"), port);
  }
}

void FakeServer::SetServing(bool serving) {
  server_->GetHealthCheckService()->SetServingStatus(serving);
}

FakeServer::~FakeServer() {
  server_->Shutdown(std::chrono::system_clock::now());
}

}  // namespace txl::testing
