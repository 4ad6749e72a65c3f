#include "server/http/completions.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "model/base/status_macros.h"
#include "server/api/methods.h"
#include "server/base/error.h"
#include "server/base/log.h"
#include "server/http/completion_json.h"
#include "server/http/completion_request.h"
#include "server/http/event_stream.h"
#include "server/http/http_call.h"
#include "server/http/http_error.h"
#include "server/http/json_in.h"
#include "server/http/read_body.h"

namespace txl {
namespace {

using Json = nlohmann::json;

const ApiMethod& Method(const char* name) {
  return *FindMethod(absl::StrCat("txl.v1.GenerationService/", name));
}

uint64_t RandomBits() {
  static thread_local std::mt19937_64 random{std::random_device{}()};
  return random();
}

// Absent: the turn chooses. A named one does where the body does not say: sent
// again it has to be the same request, and keeps the seed that was drawn.
std::optional<uint64_t> FirstSeed(const CompletionRequest& request,
                                  const ModelFacts& facts) {
  if (request.seed.has_value()) return request.seed;
  const v1::GenerateRequest& first = request.turns[0];
  if (!first.session_id().empty() && !first.request_id().empty()) {
    return std::nullopt;
  }
  return facts.generation.sampling.seed.value_or(RandomBits());
}

absl::Status Drained() {
  ErrorDetails details;
  details.reason = "SERVER_DRAIN";
  return MakeError(absl::StatusCode::kUnavailable,
                   "the server is shutting down; the turn may be asked for "
                   "again",
                   details);
}

// What a choice takes in an answer that is gathered.
int64_t GatheredBytes(const CompletionRequest& request) {
  constexpr int64_t kTokenBytes = 64;
  constexpr int64_t kAlternativeBytes = 48;
  int64_t tokens = 0;
  for (const v1::GenerateRequest& turn : request.turns) {
    tokens += request.best_of * std::max(turn.stop().max_tokens(), 0);
    if (request.echo) {
      tokens += request.best_of * (turn.tokens().ids_size() +
                                   static_cast<int64_t>(turn.text().size()));
    }
  }
  const int64_t of_token =
      kTokenBytes +
      (request.logprobs.has_value()
           ? kAlternativeBytes * (1 + std::max<int64_t>(*request.logprobs, 0))
           : 0);
  return std::max<int64_t>(tokens, 1) * of_token;
}

}  // namespace

// One request. All on the front's thread. Lives as long as a call of it runs.
class CompletionRun final : public std::enable_shared_from_this<CompletionRun> {
 public:
  CompletionRun(const HttpApi& api, std::shared_ptr<Exchange> exchange,
                CompletionRequest request, ByteHold hold)
      : desk_(api.desk),
        ping_(api.ping),
        exchange_(std::move(exchange)),
        request_(std::move(request)),
        hold_(std::move(hold)),
        facts_(*desk_->context().facts),
        names_(facts_.vocabulary, request_.tokens_as_ids),
        first_seed_(FirstSeed(request_, facts_)) {
    head_.id = absl::StrFormat("cmpl-%016x", RandomBits());
    head_.created = absl::ToUnixSeconds(absl::Now());
    head_.model = facts_.name;
    head_.fingerprint = facts_.fingerprint;
  }

  void Start() {
    exchange_->OnLeave([weak = weak_from_this()] {
      if (const auto run = weak.lock()) run->Leave();
    });
    const auto prompts = static_cast<int64_t>(request_.turns.size());
    choices_.resize(static_cast<size_t>(prompts * request_.best_of));
    left_ = static_cast<int64_t>(choices_.size());
    for (int64_t p = 0; p < prompts && !ended_; ++p) {
      ScoresPrompt() ? StartScore(p) : StartChoices(p, nullptr);
    }
  }

 private:
  struct Choice {
    std::shared_ptr<HttpCall> call;
    std::string text;
    int64_t text_points = 0;  // of the text so far, sent or not
    LogprobLists lists;
    std::vector<uint32_t> ids;
    double sum_logprob = 0;
    int64_t prompt_tokens = 0;
    int64_t generated_tokens = 0;
    v1::FinishReason reason = v1::FINISH_REASON_UNSPECIFIED;
    bool done = false;
  };

  // Where a Generate's messages go.
  class GenerateSink final : public HttpCallSink {
   public:
    GenerateSink(std::shared_ptr<CompletionRun> run, size_t choice)
        : run_(std::move(run)), choice_(choice) {}
    void OnMessage(const google::protobuf::Message& message,
                   std::function<void(bool)> taken) override {
      run_->Take(choice_, static_cast<const v1::GenerateResponse&>(message),
                 std::move(taken));
    }
    void OnSession(const std::string& id) override { run_->session_id_ = id; }
    void OnEnd(const absl::Status& status) override {
      run_->choices_[choice_].call = nullptr;
      if (!status.ok()) run_->Fail(status);
    }

   private:
    const std::shared_ptr<CompletionRun> run_;
    const size_t choice_;
  };

  // Where the scores of a prompt go.
  class ScoreSink final : public HttpCallSink {
   public:
    ScoreSink(std::shared_ptr<CompletionRun> run, int64_t prompt)
        : run_(std::move(run)), prompt_(prompt) {}
    void OnMessage(const google::protobuf::Message& message,
                   std::function<void(bool)>) override {
      scores_ = static_cast<const v1::ScoreResponse&>(message);
    }
    void OnEnd(const absl::Status& status) override {
      run_->choices_[run_->FirstChoice(prompt_)].call = nullptr;
      if (!status.ok()) return run_->Fail(status);
      run_->StartChoices(prompt_, &scores_);
    }

   private:
    const std::shared_ptr<CompletionRun> run_;
    const int64_t prompt_;
    v1::ScoreResponse scores_;
  };

  size_t FirstChoice(int64_t prompt) const {
    return static_cast<size_t>(prompt * request_.best_of);
  }
  bool ScoresPrompt() const {
    return request_.echo &&
           (request_.logprobs.has_value() || !request_.generates);
  }

  void StartScore(int64_t prompt) {
    const v1::GenerateRequest& turn = request_.turns[prompt];
    auto score = std::make_shared<v1::ScoreRequest>();
    score->set_session_id(turn.session_id());
    if (turn.has_text()) score->set_text(turn.text());
    if (turn.has_tokens()) *score->mutable_tokens() = turn.tokens();
    if (request_.logprobs.has_value()) {
      score->set_logprobs(turn.output().logprobs());
    }
    choices_[FirstChoice(prompt)].call = HttpCall::Start(
        Method("Score"), std::move(score), desk_, exchange_,
        std::make_shared<ScoreSink>(shared_from_this(), prompt));
  }

  // `scores`: of the prompt's tokens; null where they were not asked for.
  void StartChoices(int64_t prompt, const v1::ScoreResponse* scores) {
    for (int64_t j = 0; j < request_.best_of && !ended_; ++j) {
      const size_t i = FirstChoice(prompt) + static_cast<size_t>(j);
      if (request_.echo) Echo(i, request_.turns[prompt], scores);
      request_.generates ? StartTurn(i, prompt) : Finish(i);
    }
  }

  void StartTurn(size_t choice, int64_t prompt) {
    auto turn = std::make_shared<v1::GenerateRequest>(request_.turns[prompt]);
    if (first_seed_.has_value()) {
      turn->mutable_sampling()->set_seed(*first_seed_ +
                                         static_cast<uint64_t>(choice));
    }
    choices_[choice].call = HttpCall::Start(
        Method("Generate"), std::move(turn), desk_, exchange_,
        std::make_shared<GenerateSink>(shared_from_this(), choice));
  }

  // The prompt as the first part of the choice.
  void Echo(size_t i, const v1::GenerateRequest& turn,
            const v1::ScoreResponse* scores) {
    Choice part;
    if (scores != nullptr) {
      choices_[i].prompt_tokens = scores->tokens_size();
      for (const v1::ScoredToken& token : scores->tokens()) {
        if (request_.logprobs.has_value()) {
          AddLogprob(token, part.text_points, names_, &part.lists);
        }
        part.text += token.text();
        part.text_points += CodePoints(token.text());
        part.ids.push_back(token.token_id());
      }
    } else if (turn.has_text()) {
      part.text = turn.text();
    } else if (facts_.vocabulary != nullptr) {
      const std::vector<int32_t> ids(turn.tokens().ids().begin(),
                                     turn.tokens().ids().end());
      part.text = facts_.vocabulary->Decode(ids);
    }
    Add(i, std::move(part), [](bool) {});
  }

  void Take(size_t i, const v1::GenerateResponse& message,
            std::function<void(bool)> taken) {
    if (message.has_started()) {
      choices_[i].prompt_tokens = message.started().prompt_token_count();
      if (!first_seed_.has_value()) first_seed_ = message.started().seed();
      BeginStream();
      return exchange_->Post([taken = std::move(taken)] { taken(true); });
    }
    if (message.has_token()) {
      return Add(i, PartOf(i, message.token()), std::move(taken));
    }
    const v1::Finished& finished = message.finished();
    Choice& choice = choices_[i];
    choice.prompt_tokens = finished.usage().prompt_tokens();
    choice.generated_tokens = finished.usage().generated_tokens();
    if (finished.reason() == v1::FINISH_REASON_SERVER_DRAIN) {
      return Fail(Drained());
    }
    choice.reason = finished.reason();
    Choice rest;
    rest.text = finished.text();
    rest.reason = finished.reason();
    Add(i, std::move(rest), std::move(taken));
    Finish(i);
  }

  Choice PartOf(size_t i, const v1::Token& token) {
    Choice part;
    part.text = token.text();
    part.ids.push_back(token.token_id());
    part.sum_logprob = token.logprob();
    ++choices_[i].generated_tokens;
    if (request_.logprobs.has_value()) {
      AddLogprob(token, choices_[i].text_points, names_, &part.lists);
    }
    return part;
  }

  // Takes a part of a choice in: sends it, or keeps it for the whole.
  void Add(size_t i, Choice part, std::function<void(bool)> taken) {
    Choice& choice = choices_[i];
    choice.text_points += CodePoints(part.text);
    choice.sum_logprob += part.sum_logprob;
    if (request_.stream) {
      BeginStream();
      Json chunk = CompletionJson(head_, Json::array({ChoiceJson(i, part)}));
      chunk["usage"] =
          request_.continuous_usage
              ? UsageJson(choice.prompt_tokens, choice.generated_tokens)
              : Json();
      return stream_->Send(chunk.dump(), std::move(taken));
    }
    choice.text += part.text;
    choice.ids.insert(choice.ids.end(), part.ids.begin(), part.ids.end());
    const auto append = [](auto& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(choice.lists.tokens, part.lists.tokens);
    append(choice.lists.token_logprobs, part.lists.token_logprobs);
    append(choice.lists.top_logprobs, part.lists.top_logprobs);
    append(choice.lists.text_offset, part.lists.text_offset);
    exchange_->Post([taken = std::move(taken)] { taken(true); });
  }

  Json ChoiceJson(size_t index, const Choice& part) const {
    const bool lists =
        request_.logprobs.has_value() && !part.lists.tokens.empty();
    Json json = {{"index", index},
                 {"text", part.text},
                 {"logprobs", lists ? ToJson(part.lists) : Json()},
                 {"finish_reason", FinishJson(part.reason)}};
    if (request_.return_token_ids) json["token_ids"] = part.ids;
    return json;
  }

  void BeginStream() {
    if (!request_.stream || stream_ != nullptr || ended_) return;
    EventStreamOptions options;
    options.ids = request_.event_ids;
    options.skip = request_.skip_events;
    options.ping = ping_;
    options.headers = Headers();
    stream_ = EventStream::Start(exchange_, std::move(options));
  }

  std::vector<std::pair<std::string, std::string>> Headers() const {
    std::vector<std::pair<std::string, std::string>> headers;
    if (first_seed_.has_value()) {
      headers.emplace_back("x-txl-seed", absl::StrCat(*first_seed_));
    }
    if (!session_id_.empty()) {
      headers.emplace_back("x-txl-session", session_id_);
    }
    return headers;
  }

  void Finish(size_t i) {
    Choice& choice = choices_[i];
    if (!request_.generates) choice.reason = v1::FINISH_REASON_MAX_TOKENS;
    if (std::exchange(choice.done, true) || --left_ > 0 || ended_) return;
    ended_ = true;
    if (request_.stream) return EndStream();
    HttpReply reply;
    reply.headers = Headers();
    Json json = CompletionJson(head_, Chosen());
    json["usage"] = Usage();
    reply.body = json.dump();
    exchange_->Reply(std::move(reply));
  }

  void EndStream() {
    if (!request_.include_usage) return stream_->End("");
    Json chunk = CompletionJson(head_, Json::array());
    chunk["usage"] = Usage();
    stream_->End(chunk.dump());
  }

  // The n best of each prompt, in the order of prompts.
  Json Chosen() const {
    Json chosen = Json::array();
    for (size_t p = 0; p < request_.turns.size(); ++p) {
      std::vector<size_t> order(static_cast<size_t>(request_.best_of));
      std::iota(order.begin(), order.end(),
                FirstChoice(static_cast<int64_t>(p)));
      if (request_.best_of > request_.n) {
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
          return MeanLogprob(a) > MeanLogprob(b);
        });
      }
      for (int64_t j = 0; j < request_.n; ++j) {
        Json choice = ChoiceJson(0, choices_[order[static_cast<size_t>(j)]]);
        choice["index"] = chosen.size();
        chosen.push_back(std::move(choice));
      }
    }
    return chosen;
  }

  double MeanLogprob(size_t i) const {
    const auto tokens = static_cast<double>(choices_[i].generated_tokens);
    return choices_[i].sum_logprob / std::max(tokens, 1.0);
  }

  // A prompt counts once, whatever was drawn behind it.
  Json Usage() const {
    int64_t prompt = 0, generated = 0;
    for (size_t i = 0; i < choices_.size(); ++i) {
      if (i % static_cast<size_t>(request_.best_of) == 0) {
        prompt += choices_[i].prompt_tokens;
      }
      generated += choices_[i].generated_tokens;
    }
    return UsageJson(prompt, generated);
  }

  void Fail(const absl::Status& status) {
    if (std::exchange(ended_, true)) return;
    if (stream_ != nullptr) {
      stream_->End(ErrorJson(status));
    } else {
      exchange_->Reply(ErrorReply(status));
    }
    Leave();
  }

  // Nobody waits for what still runs.
  void Leave() {
    ended_ = true;
    for (Choice& choice : choices_) {
      if (const auto call = choice.call) call->Leave();
    }
  }

  CallDesk* const desk_;
  const absl::Duration ping_;
  const std::shared_ptr<Exchange> exchange_;
  const CompletionRequest request_;
  const ByteHold hold_;
  const ModelFacts& facts_;
  const TokenNames names_;
  std::optional<uint64_t> first_seed_;  // absent: not known yet
  CompletionHead head_;
  std::vector<Choice> choices_;
  int64_t left_ = 0;  // choices that are not done
  bool ended_ = false;
  std::string session_id_;
  std::shared_ptr<EventStream> stream_;  // null: nothing was sent yet
};

namespace {

void Run(const HttpApi& api, const std::shared_ptr<Exchange>& exchange,
         CompletionRequest request) {
  if (!request.ignored.empty()) {
    Log(LogSeverity::kDebug, "fields_ignored",
        {{"fields", absl::StrJoin(request.ignored, ",")}});
  }
  ByteHold hold;
  if (!request.stream) {
    absl::StatusOr<ByteHold> room =
        api.desk->HoldAnswer(GatheredBytes(request));
    if (!room.ok()) return exchange->Reply(ErrorReply(room.status()));
    hold = *std::move(room);
  }
  std::make_shared<CompletionRun>(api, exchange, std::move(request),
                                  std::move(hold))
      ->Start();
}

}  // namespace

void Complete(const HttpApi& api, std::shared_ptr<Exchange> exchange) {
  ReadBody<CompletionRequest>(
      api.desk, exchange,
      [&api](const HttpRequest& http) -> absl::StatusOr<CompletionRequest> {
        TXL_ASSIGN_OR_RETURN(const Json body, ParseBody(http.body));
        return ReadCompletion(body, http, *api.desk->context().facts);
      },
      [&api, exchange](CompletionRequest request) {
        Run(api, exchange, std::move(request));
      });
}

}  // namespace txl
