#include "client/bench/plan/workload.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "client/text_check.h"

namespace txl::bench {
namespace {

// Which draws of a turn a generator is for.
enum class Draws : uint64_t { kContent, kTurns, kThinking };

Random TurnRandom(const Workload& workload, Draws draws, int64_t conversation,
                  int64_t turn) {
  return Random({workload.seed, static_cast<uint64_t>(draws),
                 static_cast<uint64_t>(conversation),
                 static_cast<uint64_t>(turn)});
}

// Without a prompt the request gets random ids.
void FillPrompt(const Workload& workload, int64_t vocabulary,
                const Prompt* prompt, Random& random,
                v1::GenerateRequest* request) {
  if (prompt == nullptr) {
    const int64_t length =
        std::max<int64_t>(1, workload.prompt_tokens.DrawCount(random));
    for (int64_t i = 0; i < length; ++i) {
      request->mutable_tokens()->add_ids(static_cast<uint32_t>(
          random.Bits() % static_cast<uint64_t>(vocabulary)));
    }
    return;
  }
  if (prompt->tokens.empty()) {
    request->set_text(prompt->text);
  } else {
    request->mutable_tokens()->mutable_ids()->Assign(prompt->tokens.begin(),
                                                     prompt->tokens.end());
  }
}

}  // namespace

const Prompt* PromptOf(const Workload& workload, int64_t conversation,
                       int64_t turn) {
  if (workload.prompts.empty()) return nullptr;
  const auto count = static_cast<int64_t>(workload.prompts.size());
  return &workload.prompts[(conversation + turn) % count];
}

int64_t PlanTurns(const Workload& workload, int64_t conversation) {
  Random random = TurnRandom(workload, Draws::kTurns, conversation, 0);
  return std::max<int64_t>(1, workload.turns.DrawCount(random));
}

double PlanThinkSeconds(const Workload& workload, int64_t conversation,
                        int64_t turn) {
  Random random = TurnRandom(workload, Draws::kThinking, conversation, turn);
  return workload.think_seconds.Draw(random);
}

TurnPlan PlanTurn(const Workload& workload, int64_t vocabulary,
                  int64_t conversation, int64_t turn) {
  Random random = TurnRandom(workload, Draws::kContent, conversation, turn);
  TurnPlan plan;
  v1::GenerateRequest& request = plan.request;
  FillPrompt(workload, vocabulary, PromptOf(workload, conversation, turn),
             random, &request);
  const int64_t max_tokens =
      std::max<int64_t>(1, workload.max_tokens.DrawCount(random));
  request.mutable_stop()->set_max_tokens(static_cast<int32_t>(max_tokens));
  request.mutable_stop()->set_ignore_end_token(true);
  request.mutable_sampling()->set_temperature(workload.temperature);
  request.mutable_sampling()->set_seed(random.Bits());
  if (workload.tokens_per_message > 1) {
    request.mutable_output()->set_max_tokens_per_message(
        workload.tokens_per_message);
  }
  const double midway = random.Uniform();
  if (random.Uniform() < workload.cancel_share) {
    plan.cancel_after_tokens =
        static_cast<int64_t>(midway * static_cast<double>(max_tokens));
  }
  plan.slow_reader = random.Uniform() < workload.slow_share;
  return plan;
}

namespace {

double* Field(Limits& limits, const std::string& name) {
  if (name == "ttft") return &limits.time_to_first_token;
  if (name == "itl") return &limits.inter_token;
  if (name == "tpot") return &limits.per_token;
  if (name == "e2e") return &limits.end_to_end;
  return nullptr;
}

}  // namespace

bool Limits::any() const {
  return time_to_first_token != kNone || inter_token != kNone ||
         per_token != kNone || end_to_end != kNone;
}

absl::StatusOr<Limits> ParseLimits(const std::vector<std::string>& texts) {
  Limits limits;
  for (const std::string& text : texts) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(text, absl::MaxSplits('=', 1));
    double* field = Field(limits, parts.first);
    absl::Duration duration;
    if (field == nullptr || !absl::ParseDuration(parts.second, &duration) ||
        duration <= absl::ZeroDuration() ||
        duration == absl::InfiniteDuration()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text,
                       "' is not NAME=DURATION with ttft, itl, tpot or e2e, "
                       "as in ttft=200ms"));
    }
    if (*field != Limits::kNone) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", parts.first, "' is given twice"));
    }
    *field = absl::ToDoubleSeconds(duration);
  }
  return limits;
}

namespace {

bool ReadTokens(const nlohmann::json& tokens, std::vector<uint32_t>* ids) {
  if (!tokens.is_array() || tokens.empty()) return false;
  for (const nlohmann::json& token : tokens) {
    if (!token.is_number_unsigned() ||
        token.get<uint64_t>() > std::numeric_limits<uint32_t>::max()) {
      return false;
    }
    ids->push_back(token.get<uint32_t>());
  }
  return true;
}

// False: not a prompt.
bool ReadPrompt(absl::string_view line, Prompt* prompt) {
  const nlohmann::json json =
      nlohmann::json::parse(line.begin(), line.end(), nullptr,
                            /*allow_exceptions=*/false);
  if (!json.is_object() || json.contains("text") == json.contains("tokens")) {
    return false;
  }
  if (json.contains("tokens"))
    return ReadTokens(json["tokens"], &prompt->tokens);
  if (!json["text"].is_string()) return false;
  prompt->text = json["text"].get<std::string>();
  return !prompt->text.empty();
}

}  // namespace

std::vector<Prompt> ParsePromptLines(absl::string_view text) {
  std::vector<Prompt> prompts;
  int64_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripSuffix(line, "\r");
    if (!line.empty()) prompts.push_back({std::string(line), {}, number});
  }
  return prompts;
}

absl::StatusOr<std::vector<Prompt>> ParsePromptObjects(absl::string_view text) {
  std::vector<Prompt> prompts;
  int64_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripSuffix(line, "\r");
    if (line.empty()) continue;
    Prompt prompt;
    prompt.line = number;
    if (!ReadPrompt(line, &prompt)) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number,
                       " is not an object with either \"text\" or \"tokens\""));
    }
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

absl::StatusOr<std::vector<Prompt>> ReadPrompts(const std::string& path) {
  const absl::StatusOr<std::string> all = ReadUserFile(path);
  if (!all.ok()) return all.status();
  absl::Status status = CheckTextFile(path, *all);
  if (!status.ok()) return status;
  const absl::string_view text = WithoutMark(*all);
  absl::StatusOr<std::vector<Prompt>> prompts = ParsePromptLines(text);
  if (absl::EndsWith(path, ".jsonl")) prompts = ParsePromptObjects(text);
  if (!prompts.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", prompts.status().message()));
  }
  if (prompts->empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": has no prompt"));
  }
  return prompts;
}

}  // namespace txl::bench
