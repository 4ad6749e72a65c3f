#include "server/http/completions.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_join.h"
#include "model/base/status_macros.h"
#include "server/api/convert_input.h"
#include "server/api/convert_sampling.h"
#include "server/base/log.h"
#include "server/http/chat_request.h"
#include "server/http/completion_request.h"
#include "server/http/completion_run.h"
#include "server/http/http_error.h"
#include "server/http/json_in.h"
#include "server/http/read_body.h"

namespace txl {
namespace {

using Json = nlohmann::json;

// What an answer takes that is gathered. A request over a limit is refused by
// its turns, not here.
int64_t GatheredBytes(const CompletionRequest& request,
                      const ServiceContext& context) {
  const RequestLimits& limits = context.limits;
  constexpr int64_t kTokenBytes = 64;
  constexpr int64_t kAlternativeBytes = 48;
  int64_t tokens = 0;
  for (const v1::GenerateRequest& turn : request.turns) {
    const int64_t most = turn.stop().has_max_tokens()
                             ? turn.stop().max_tokens()
                             : DefaultStop(*context.facts, limits).max_tokens;
    if (request.generates) {
      tokens += std::clamp<int64_t>(most, 1, limits.max_tokens);
    }
    if (request.echo) {
      tokens +=
          turn.tokens().ids_size() + static_cast<int64_t>(turn.text().size());
    }
  }
  int64_t of_token = kTokenBytes;
  if (request.logprobs.has_value()) {
    of_token += kAlternativeBytes *
                std::clamp<int64_t>(*request.logprobs + 1, 1, limits.logprobs);
  }
  return tokens * request.best_of * of_token;
}

// A turn checks its own. Where its prompt is fed or scored before it, or has no
// turn, they are checked before anything is done.
absl::Status CheckFields(const CompletionRequest& request,
                         const ServiceContext& context) {
  if (!request.echo && request.best_of == 1) return absl::OkStatus();
  return ReadGenerateFields(request.turns[0], *context.facts, context.limits)
      .status();
}

void Run(const HttpApi& api, const std::shared_ptr<Exchange>& exchange,
         CompletionRequest request) {
  if (!request.ignored.empty()) {
    Log(LogSeverity::kDebug, "fields_ignored",
        {{"fields", absl::StrJoin(request.ignored, ",")}});
  }
  const ServiceContext& context = api.desk->context();
  const absl::Status fields = CheckFields(request, context);
  if (!fields.ok()) {
    return exchange->Reply(ErrorReply(AsOfBody(fields, request)));
  }
  ByteHold hold;
  if (!request.stream) {
    absl::StatusOr<ByteHold> room =
        api.desk->HoldAnswer(GatheredBytes(request, context));
    if (!room.ok()) return exchange->Reply(ErrorReply(room.status()));
    hold = *std::move(room);
  }
  std::make_shared<CompletionRun>(api, exchange, std::move(request),
                                  std::move(hold))
      ->Start();
}

using Reader = absl::StatusOr<CompletionRequest> (*)(const Json&,
                                                     const HttpRequest&,
                                                     const ModelFacts&);

void Read(const HttpApi& api, const std::shared_ptr<Exchange>& exchange,
          Reader read) {
  ReadBody<CompletionRequest>(
      api.desk, exchange,
      [&api,
       read](const HttpRequest& http) -> absl::StatusOr<CompletionRequest> {
        TXL_ASSIGN_OR_RETURN(const Json body, ParseBody(http.body));
        return read(body, http, *api.desk->context().facts);
      },
      [&api, exchange](CompletionRequest request) {
        Run(api, exchange, std::move(request));
      });
}

}  // namespace

void Complete(const HttpApi& api, std::shared_ptr<Exchange> exchange) {
  Read(api, exchange, ReadCompletion);
}

void Chat(const HttpApi& api, std::shared_ptr<Exchange> exchange) {
  Read(api, exchange, ReadChat);
}

}  // namespace txl
