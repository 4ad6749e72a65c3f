// A request's bytes through parsing and every check that needs no session. The
// first byte of the input says of which method.

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "model/text/byte_vocabulary.h"
#include "server/api/convert_input.h"
#include "server/rpc/open_call.h"
#include "server/session/session_name.h"

namespace txl {
namespace {

const ModelFacts& Facts() {
  static const ByteVocabulary vocabulary;
  static const ModelFacts facts = [] {
    ModelFacts made;
    made.config.vocab_size = ByteVocabulary::kSize;
    made.vocabulary = &vocabulary;
    return made;
  }();
  return facts;
}

// Limits that short inputs reach.
RequestLimits Limits() {
  RequestLimits limits;
  limits.prompt_tokens = 64;
  limits.prompt_bytes = 128;
  limits.max_tokens = 100;
  limits.stop_text_bytes = 16;
  return limits;
}

// What passes the checks must be within the limits.
void Check(bool holds) {
  if (!holds) std::abort();
}

void CheckInput(const std::vector<int32_t>& ids) {
  Check(static_cast<int64_t>(ids.size()) <= Limits().prompt_tokens);
  for (const int32_t id : ids) Check(id >= 0 && id < ByteVocabulary::kSize);
}

template <typename Request>
bool Parse(const std::string& bytes, Request* request) {
  const grpc::Slice slice(bytes);
  if (!ParseMessage(grpc::ByteBuffer(&slice, 1), request).ok()) return false;
  Check(RequestDigest(*request).size() == 32);
  return true;
}

void RunGenerate(const std::string& bytes) {
  v1::GenerateRequest request;
  if (!Parse(bytes, &request)) return;
  const auto params = ReadGenerate(request, Facts(), Limits());
  if (!params.ok()) return;
  if (params->input.has_value()) CheckInput(*params->input);
  Check(params->stop.max_tokens >= 1 && params->stop.max_tokens <= 100);
  Check(params->sampling.min_tokens <= params->stop.max_tokens);
  Check(ValidateSamplingParams(params->sampling, ByteVocabulary::kSize,
                               Facts().kinds != nullptr)
            .ok());
  for (const int64_t room : {0, 1, 50, 1000}) {
    const auto most = FitMaxTokens(*params, 10, room);
    if (most.ok()) Check(*most >= 1 && 10 + *most <= room);
  }
}

template <typename Request>
void RunFeed(const std::string& bytes,
             absl::StatusOr<FeedParams> (*read)(const Request&,
                                                const ModelFacts&,
                                                const RequestLimits&)) {
  Request request;
  if (!Parse(bytes, &request)) return;
  const auto params = read(request, Facts(), Limits());
  if (params.ok()) CheckInput(params->input);
}

template <typename Request>
void RunIds(const std::string& bytes,
            absl::StatusOr<std::vector<int32_t>> (*read)(
                const Request&, const ModelFacts&, const RequestLimits&)) {
  Request request;
  if (!Parse(bytes, &request)) return;
  const auto ids = read(request, Facts(), Limits());
  if (ids.ok()) CheckInput(*ids);
}

void RunSession(const std::string& bytes) {
  v1::CreateSessionRequest create;
  if (Parse(bytes, &create)) ReadTtl(create).status().IgnoreError();
  v1::GetSessionRequest get;
  if (Parse(bytes, &get)) {
    const auto range = ReadTokenRange(get);
    if (range.ok()) Check(range->from >= 0 && range->count > 0);
    CheckSessionMetadata({bytes, get.session_id()}, get.session_id())
        .IgnoreError();
  }
  v1::ListSessionsRequest list;
  Parse(bytes, &list);
  v1::DeleteSessionRequest remove;
  if (Parse(bytes, &remove))
    ValidateSessionId(remove.session_id()).IgnoreError();
}

void Run(uint8_t method, const std::string& bytes) {
  switch (method % 6) {
    case 0:
      return RunGenerate(bytes);
    case 1:
      return RunFeed<v1::AppendTokensRequest>(bytes, ReadAppend);
    case 2:
      return RunFeed<v1::ScoreRequest>(bytes, ReadScore);
    case 3:
      return RunIds<v1::TokenizeRequest>(bytes, ReadTokenize);
    case 4:
      return RunIds<v1::DetokenizeRequest>(bytes, ReadDetokenize);
    default:
      return RunSession(bytes);
  }
}

}  // namespace
}  // namespace txl

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  txl::Run(data[0],
           std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}
