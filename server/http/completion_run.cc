#include "server/http/completion_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/base/status_macros.h"
#include "model/text/utf8.h"
#include "server/api/convert_input.h"
#include "server/api/convert_sampling.h"
#include "server/api/methods.h"
#include "server/base/log.h"
#include "server/http/completion_json.h"
#include "server/http/completion_request.h"
#include "server/http/http_api.h"
#include "server/http/http_error.h"
#include "server/http/json_in.h"
#include "server/http/message_json.h"
#include "server/session/session_errors.h"

namespace txl {
namespace {

using Json = nlohmann::json;

const ApiMethod& Method(const char* name) {
  return *FindMethod(absl::StrCat("txl.v1.GenerationService/", name));
}

// The end of a prompt decides whether a space follows it. A whole prompt would
// keep the front's thread busy.
constexpr size_t kTailBytes = 256;

std::string TailOf(const std::string& text) {
  size_t begin = text.size() - std::min(text.size(), kTailBytes);
  while (begin < text.size() && (text[begin] & 0xc0) == 0x80) ++begin;
  return text.substr(begin);
}

// The text that a client has received behind the prompt.
std::string ReceivedText(const v1::GenerateRequest& turn,
                         const Vocabulary* vocabulary) {
  if (vocabulary == nullptr) return "";
  std::vector<int32_t> prompt(turn.tokens().ids().begin(),
                              turn.tokens().ids().end());
  if (turn.has_text()) {
    const EncodeOptions options = {.skip_unknown = true};
    prompt = vocabulary->Encode(TailOf(turn.text()), options)
                 .value_or(std::vector<int32_t>());
  }
  const std::unique_ptr<Detokenizer> text = vocabulary->NewDetokenizer();
  for (const int32_t id : prompt) text->Add(id);
  std::string received;
  for (const uint32_t id : turn.received().token_ids()) {
    received += text->Add(static_cast<int32_t>(id));
  }
  return received;
}

}  // namespace

// Where a Generate's messages go.
class CompletionRun::GenerateSink final : public HttpCallSink {
 public:
  GenerateSink(std::shared_ptr<CompletionRun> run, size_t choice)
      : run_(std::move(run)), choice_(choice) {}
  void OnMessage(const google::protobuf::Message& message,
                 std::function<void(bool)> taken) override {
    run_->Take(choice_, static_cast<const v1::GenerateResponse&>(message),
               std::move(taken));
  }
  void OnSession(const std::string& id) override {
    // Not one that was made for a sample.
    if (run_->samples_[run_->PromptOf(choice_)] == nullptr) {
      run_->session_id_ = id;
    }
  }
  void OnEnd(const absl::Status& status) override {
    run_->choices_[choice_].call = nullptr;
    if (!status.ok()) run_->Fail(status, run_->PromptOf(choice_));
  }

 private:
  const std::shared_ptr<CompletionRun> run_;
  const size_t choice_;
};

// Where the scores of a prompt go.
class CompletionRun::ScoreSink final : public HttpCallSink {
 public:
  ScoreSink(std::shared_ptr<CompletionRun> run, int64_t prompt)
      : run_(std::move(run)), prompt_(prompt) {}
  void OnMessage(const google::protobuf::Message& message,
                 std::function<void(bool)>) override {
    scores_ = static_cast<const v1::ScoreResponse&>(message);
  }
  void OnSession(const std::string& id) override { run_->session_id_ = id; }
  void OnEnd(const absl::Status& status) override {
    run_->choices_[run_->FirstChoice(prompt_)].call = nullptr;
    if (!status.ok()) return run_->Fail(status, prompt_);
    run_->StartScored(prompt_, scores_);
  }

 private:
  const std::shared_ptr<CompletionRun> run_;
  const int64_t prompt_;
  v1::ScoreResponse scores_;
};

CompletionRun::CompletionRun(const HttpApi& api,
                             std::shared_ptr<Exchange> exchange,
                             CompletionRequest request, ByteHold hold)
    : desk_(api.desk),
      ping_(api.options.ping),
      exchange_(std::move(exchange)),
      request_(std::move(request)),
      hold_(std::move(hold)),
      facts_(*desk_->context().turns.model.facts),
      format_{request_.logprobs.has_value(), request_.return_token_ids,
              TokenNames(facts_.vocabulary, request_.tokens_as_ids)},
      first_seed_(FirstSeed(request_, facts_)),
      head_(NewHead(request_, facts_)) {}

void CompletionRun::Start() {
  exchange_->OnLeave([weak = weak_from_this()] {
    if (const auto run = weak.lock()) run->Leave();
  });
  const auto prompts = static_cast<int64_t>(request_.turns.size());
  choices_.resize(static_cast<size_t>(prompts * request_.best_of));
  samples_.resize(request_.turns.size());
  left_ = static_cast<int64_t>(choices_.size());
  for (int64_t p = 0; p < prompts && !ended_; ++p) {
    if (FeedsFirst(p)) {
      StartSamples(p);
    } else if (ScoresFirst(p)) {
      StartScore(p);
    } else {
      StartChoices(p, nullptr);
    }
  }
}

size_t CompletionRun::FirstChoice(int64_t prompt) const {
  return static_cast<size_t>(prompt * request_.best_of);
}

// What is fed to a session of the run's own is scored while it is.
bool CompletionRun::FeedsFirst(int64_t prompt) const {
  const v1::GenerateRequest& turn = request_.turns[prompt];
  const bool scored = request_.echo && request_.logprobs.has_value();
  return request_.generates && HasPrompt(prompt) &&
         (request_.best_of > 1 || (scored && turn.session_id().empty()));
}

// An empty prompt has nothing to score: the text goes on.
bool CompletionRun::ScoresFirst(int64_t prompt) const {
  if (!request_.generates) return true;
  return request_.echo && request_.logprobs.has_value() && HasPrompt(prompt) &&
         !FeedsFirst(prompt);
}

bool CompletionRun::HasPrompt(int64_t prompt) const {
  return request_.turns[prompt].prompt_case() !=
         v1::GenerateRequest::PROMPT_NOT_SET;
}

void CompletionRun::StartScore(int64_t prompt) {
  const v1::GenerateRequest& turn = request_.turns[prompt];
  auto score = std::make_shared<v1::ScoreRequest>();
  score->set_session_id(turn.session_id());
  if (turn.has_text()) score->set_text(turn.text());
  if (turn.has_tokens()) *score->mutable_tokens() = turn.tokens();
  score->set_unknown(turn.unknown());
  if (format_.logprobs) {
    score->set_logprobs(turn.output().logprobs());
    *score->mutable_logprob_token_ids() = turn.output().logprob_token_ids();
  }
  choices_[FirstChoice(prompt)].call =
      HttpCall::Start(Method("Score"), std::move(score), desk_, exchange_,
                      std::make_shared<ScoreSink>(shared_from_this(), prompt));
}

void CompletionRun::StartScored(int64_t prompt,
                                const v1::ScoreResponse& scores) {
  absl::StatusOr<v1::GenerateRequest> turn =
      TurnBehind(scores, std::move(request_.turns[prompt]));
  if (!turn.ok()) return Fail(turn.status(), prompt);
  request_.turns[prompt] = *std::move(turn);
  SetCached(prompt, scores.usage());
  StartChoices(prompt, &scores.tokens());
}

void CompletionRun::SetCached(int64_t prompt, const v1::Usage& usage) {
  const size_t first = FirstChoice(prompt);
  for (int64_t j = 0; j < request_.best_of; ++j) {
    choices_[first + j].cached_tokens = usage.cached_tokens();
  }
}

void CompletionRun::StartChoices(int64_t prompt, const ScoredTokens* scores) {
  v1::GenerateRequest& turn = request_.turns[prompt];
  const size_t first = FirstChoice(prompt);
  const size_t end = first + static_cast<size_t>(request_.best_of);
  for (size_t choice = first; choice < end && !ended_; ++choice) {
    const absl::Status begun = Begin(choice, turn, scores);
    if (!begun.ok()) return Fail(begun, prompt);
    if (!request_.generates) Finish(choice);
  }
  if (!request_.generates) return;
  if (samples_[prompt] != nullptr) {  // fed
    turn.clear_prompt();
    turn.clear_expected_position();
  }
  for (size_t choice = first; choice < end && !ended_; ++choice) {
    StartTurn(choice, choice + 1 < end ? turn : std::move(turn));
  }
}

void CompletionRun::StartSamples(int64_t prompt) {
  std::optional<uint32_t> logprobs;
  if (request_.echo && request_.logprobs.has_value()) {
    logprobs = request_.turns[prompt].output().logprobs();
  }
  samples_[prompt] = std::make_shared<SampleSessions>(
      desk_, exchange_, request_.best_of, logprobs);
  samples_[prompt]->Start(
      request_.turns[prompt],
      [run = shared_from_this(), prompt,
       logprobs](absl::StatusOr<v1::AppendTokensResponse> fed) {
        if (!fed.ok()) return run->Fail(fed.status(), prompt);
        const size_t first = run->FirstChoice(prompt);
        for (int64_t j = 0; j < run->request_.best_of; ++j) {
          run->choices_[first + j].prompt_before = fed->position();
        }
        run->SetCached(prompt, fed->usage());
        run->StartChoices(prompt,
                          logprobs.has_value() ? &fed->scored() : nullptr);
      });
}

void CompletionRun::StartTurn(size_t choice, v1::GenerateRequest turn) {
  auto request = std::make_shared<v1::GenerateRequest>(std::move(turn));
  const int64_t prompt = PromptOf(choice);
  const auto of_prompt = static_cast<int64_t>(choice) % request_.best_of;
  if (first_seed_.has_value()) {
    request->mutable_sampling()->set_seed(*first_seed_ + of_prompt);
  }
  if (const auto& samples = samples_[prompt]) {
    request->set_session_id(samples->id(of_prompt));
  }
  choices_[choice].call = HttpCall::Start(
      Method("Generate"), std::move(request), desk_, exchange_,
      std::make_shared<GenerateSink>(shared_from_this(), choice));
}

absl::Status CompletionRun::Begin(size_t choice,
                                  const v1::GenerateRequest& turn,
                                  const ScoredTokens* scores) {
  if (request_.chat && request_.stream) {
    choices_[choice].first.emplace().begins = true;
  }
  // Offsets of a text's tokens count from its prompt's begin, echoed or not.
  if (!request_.echo && !format_.logprobs) return absl::OkStatus();
  CompletionChoice part;
  if (scores != nullptr) {
    choices_[choice].prompt_tokens = scores->size();
    part = PartOf(*scores, format_.logprobs);
  } else if (turn.has_text()) {
    part.text = turn.text();
  } else if (turn.has_tokens()) {
    TXL_ASSIGN_OR_RETURN(
        part.text,
        ReadTextOf(turn.tokens(), facts_, desk_->context().turns.model.limits));
  }
  if (turn.has_received()) {
    part.text += ReceivedText(turn, facts_.vocabulary);
  }
  if (!request_.echo) {
    choices_[choice].code_points = CodePoints(part.text);
    return absl::OkStatus();
  }
  // Nothing is sent before the turn is known to run.
  if (request_.stream && request_.generates) {
    choices_[choice].first = std::move(part);
    return absl::OkStatus();
  }
  Add(choice, part, [](bool) {});
  return absl::OkStatus();
}

void CompletionRun::Take(size_t choice, const v1::GenerateResponse& message,
                         std::function<void(bool)> taken) {
  Choice& of = choices_[choice];
  if (message.has_started()) {
    of.prompt_tokens =
        of.prompt_before + message.started().prompt_token_count();
    if (!first_seed_.has_value()) first_seed_ = message.started().seed();
    BeginStream();
    if (of.first.has_value()) {
      return Add(choice, *std::exchange(of.first, std::nullopt),
                 std::move(taken));
    }
    return exchange_->Post([taken = std::move(taken)] { taken(true); });
  }
  if (message.has_finished()) {
    return TakeEnd(choice, message.finished(), std::move(taken));
  }
  ++of.generated_tokens;
  const int64_t offset = of.code_points + message.token().held_back();
  Add(choice, PartOf(message.token(), offset, format_.logprobs),
      std::move(taken));
}

void CompletionRun::TakeEnd(size_t choice, const v1::Finished& finished,
                            std::function<void(bool)> taken) {
  choices_[choice].prompt_tokens =
      choices_[choice].prompt_before + finished.usage().prompt_tokens();
  choices_[choice].generated_tokens = finished.usage().generated_tokens();
  if (!choices_[choice].cached_tokens.has_value()) {
    choices_[choice].cached_tokens = finished.usage().cached_tokens();
  }
  if (finished.reason() == v1::FINISH_REASON_SERVER_DRAIN) {
    return Fail(BrokenOffError(), PromptOf(choice));
  }
  CompletionChoice rest;
  rest.text = finished.text();
  rest.reason = finished.reason();
  Add(choice, rest, std::move(taken));
  Finish(choice);
}

void CompletionRun::Add(size_t choice, const CompletionChoice& part,
                        std::function<void(bool)> taken) {
  Choice& of = choices_[choice];
  of.code_points += CodePoints(part.text);
  if (!request_.stream) {
    Append(part, &of.whole);
    return exchange_->Post([taken = std::move(taken)] { taken(true); });
  }
  BeginStream();
  if (ended_)
    return exchange_->Post([taken = std::move(taken)] { taken(false); });
  const auto index = static_cast<int64_t>(choice);
  Json chunk = CompletionJson(
      head_, Json::array({request_.chat ? ChatDeltaJson(index, part, format_)
                                        : ChoiceJson(index, part, format_)}));
  chunk["usage"] =
      request_.continuous_usage
          ? UsageJson(of.prompt_tokens, of.cached_tokens.value_or(0),
                      of.generated_tokens)
          : Json();
  stream_->Send(DumpJson(chunk), std::move(taken));
}

void CompletionRun::BeginStream() {
  if (!request_.stream || stream_ != nullptr || ended_) return;
  EventStreamOptions options;
  options.ids = request_.event_ids;
  options.skip = request_.skip_events;
  options.ping = ping_;
  options.headers = Headers();
  stream_ = EventStream::Start(exchange_, std::move(options));
}

std::vector<std::pair<std::string, std::string>> CompletionRun::Headers()
    const {
  std::vector<std::pair<std::string, std::string>> headers;
  if (first_seed_.has_value()) {
    headers.emplace_back("x-txl-seed", absl::StrCat(*first_seed_));
  }
  if (!session_id_.empty()) {
    headers.emplace_back("x-txl-session", session_id_);
  }
  return headers;
}

void CompletionRun::Finish(size_t choice) {
  Choice& of = choices_[choice];
  if (!request_.generates) of.whole.reason = v1::FINISH_REASON_MAX_TOKENS;
  if (std::exchange(of.done, true) || --left_ > 0 || ended_) return;
  ended_ = true;
  StopSamples();
  if (request_.stream) return EndStream();
  HttpReply reply;
  reply.headers = Headers();
  Json json = CompletionJson(head_, Json());
  json.erase("choices");
  json["usage"] = Usage();
  reply.body = DumpJson(json);
  reply.body.back() = ',';  // its brace
  AppendChosen(&reply.body);
  reply.body += '}';
  exchange_->Reply(std::move(reply));
}

void CompletionRun::EndStream() {
  if (!request_.include_usage) return stream_->End("");
  Json chunk = CompletionJson(head_, Json::array());
  chunk["usage"] = Usage();
  stream_->End(DumpJson(chunk));
}

void CompletionRun::AppendChosen(std::string* body) {
  const auto mean = [this](size_t i) {
    return choices_[i].whole.sum_logprob /
           static_cast<double>(
               std::max<int64_t>(choices_[i].generated_tokens, 1));
  };
  int64_t index = 0;
  *body += "\"choices\":[";
  for (size_t p = 0; p < request_.turns.size(); ++p) {
    std::vector<size_t> order(static_cast<size_t>(request_.best_of));
    std::iota(order.begin(), order.end(), FirstChoice(static_cast<int64_t>(p)));
    if (request_.best_of > request_.n) {
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return mean(a) > mean(b); });
    }
    for (int64_t j = 0; j < request_.n; ++j) {
      const auto whole = std::exchange(
          choices_[order[static_cast<size_t>(j)]].whole, CompletionChoice());
      if (index > 0) *body += ',';
      *body += DumpJson(request_.chat ? ChatChoiceJson(index, whole, format_)
                                      : ChoiceJson(index, whole, format_));
      ++index;
    }
  }
  *body += ']';
}

// A prompt counts once, whatever was drawn behind it.
Json CompletionRun::Usage() const {
  int64_t prompt = 0;
  int64_t cached = 0;
  int64_t generated = 0;
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (i % static_cast<size_t>(request_.best_of) == 0) {
      prompt += choices_[i].prompt_tokens;
      cached += choices_[i].cached_tokens.value_or(0);
    }
    generated += choices_[i].generated_tokens;
  }
  return UsageJson(prompt, cached, generated);
}

void CompletionRun::Fail(const absl::Status& of_call, int64_t prompt) {
  if (std::exchange(ended_, true)) return;
  const absl::Status status = AsOfBody(of_call, request_, prompt);
  if (stream_ != nullptr) {
    stream_->Fail(ErrorJson(status));
  } else {
    exchange_->Reply(ErrorReply(status));
  }
  Leave();
}

void CompletionRun::Leave() {
  ended_ = true;
  for (Choice& choice : choices_) {
    if (const auto call = choice.call) call->Leave();
  }
  StopSamples();
}

void CompletionRun::StopSamples() {
  for (const auto& samples : samples_) {
    if (samples != nullptr) samples->Stop();
  }
}

namespace {

using Json = nlohmann::json;

// What an answer takes that is gathered. A request over a limit is refused by
// its turns, not here.
int64_t GatheredBytes(const CompletionRequest& request,
                      const ServedModel& model) {
  const RequestLimits& limits = model.limits;
  constexpr int64_t kTokenBytes = 64;
  constexpr int64_t kAlternativeBytes = 48;
  int64_t tokens = 0;
  for (const v1::GenerateRequest& turn : request.turns) {
    const int64_t most = turn.stop().has_max_tokens()
                             ? turn.stop().max_tokens()
                             : DefaultStop(*model.facts, limits).max_tokens;
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
    const int64_t ids = request.turns[0].output().logprob_token_ids_size();
    of_token += kAlternativeBytes * (std::clamp<int64_t>(*request.logprobs + 1,
                                                         1, limits.logprobs) +
                                     std::min(ids, limits.logprobs));
  }
  return tokens * request.best_of * of_token;
}

// A turn checks its own. Where its prompt is fed or scored before it, or has no
// turn, they are checked before anything is done.
absl::Status CheckFields(const CompletionRequest& request,
                         const ServedModel& model) {
  if (!request.echo && request.best_of == 1) return absl::OkStatus();
  return ReadGenerateFields(request.turns[0], *model.facts, model.limits)
      .status();
}

void Run(const HttpApi& api, const std::shared_ptr<Exchange>& exchange,
         CompletionRequest request) {
  if (!request.ignored.empty()) {
    Log(LogSeverity::kDebug, "fields_ignored",
        {{"fields", absl::StrJoin(request.ignored, ",")}});
  }
  const ServedModel& model = api.desk->context().turns.model;
  const absl::Status fields = CheckFields(request, model);
  if (!fields.ok()) {
    return exchange->Reply(ErrorReply(AsOfBody(fields, request, 0)));
  }
  ByteHold hold;
  if (!request.stream) {
    absl::StatusOr<ByteHold> room =
        api.desk->HoldAnswer(GatheredBytes(request, model));
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
        return read(body, http, *api.desk->context().turns.model.facts);
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

absl::StatusOr<v1::GenerateRequest> TurnBehind(const v1::ScoreResponse& scores,
                                               v1::GenerateRequest turn) {
  if (turn.session_id().empty()) return turn;
  if (turn.has_expected_position() &&
      turn.expected_position() != scores.position()) {
    return PositionMismatchError(scores.position(), turn.expected_position());
  }
  turn.set_expected_position(scores.position());
  return turn;
}

}  // namespace txl
