#pragma once

// A completion that runs: the turns of its choices, and what becomes of their
// messages.
//
// Several samples of a prompt go on from forks of one session that holds it; so
// does one where the prompt's probabilities are wanted, which are told while it
// is fed. In a session of the client's, or where nothing is generated, they are
// those of a Score before, which changes nothing, and the turn wants the
// session where the Score found it: both together are one turn, or none. Every
// choice of a prompt draws with a seed of its own, counted from the request's,
// so that each prompt has the choices that it has alone. The first error is the
// answer's, and ends all other turns; so does a client that leaves.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/byte_budget.h"
#include "server/http/completion_json.h"
#include "server/http/completion_request.h"
#include "server/http/event_stream.h"
#include "server/http/http_api.h"
#include "server/http/http_call.h"
#include "server/http/http_message.h"
#include "server/http/sample_sessions.h"
#include "txl/v1/generation_service.pb.h"

namespace txl {

// All on the front's thread. Lives as long as a call of it runs.
class CompletionRun final : public std::enable_shared_from_this<CompletionRun> {
 public:
  // `hold`: room for an answer that is gathered. `api` outlives the run.
  CompletionRun(const HttpApi& api, std::shared_ptr<Exchange> exchange,
                CompletionRequest request, ByteHold hold);

  void Start();

 private:
  class GenerateSink;
  class ScoreSink;
  struct Choice {
    std::shared_ptr<HttpCall> call;  // null: none runs
    CompletionChoice whole;          // of an answer that is gathered
    // Goes before the first token and is not sent yet: the prompt, or whose
    // message it is.
    std::optional<CompletionChoice> first;
    int64_t code_points = 0;    // of the prompt and the text so far
    int64_t prompt_before = 0;  // of it, fed before the choice's turn
    int64_t prompt_tokens = 0;
    // Cached tokens of the prompt, as its first call reports them; absent
    // until then.
    std::optional<int64_t> cached_tokens;
    int64_t generated_tokens = 0;
    bool done = false;
  };

  size_t FirstChoice(int64_t prompt) const;
  int64_t PromptOf(size_t choice) const {
    return static_cast<int64_t>(choice) / request_.best_of;
  }
  // Which call comes before the turns of a prompt's choices, if any.
  bool FeedsFirst(int64_t prompt) const;
  bool ScoresFirst(int64_t prompt) const;
  bool HasPrompt(int64_t prompt) const;
  void StartScore(int64_t prompt);
  // A turn of a session begins where the session stood for the scores.
  void StartScored(int64_t prompt, const v1::ScoreResponse& scores);
  // `scores`: of the prompt's tokens; null where they were not asked for.
  void StartChoices(int64_t prompt, const ScoredTokens* scores);
  void StartSamples(int64_t prompt);
  void StartTurn(size_t choice, v1::GenerateRequest turn);
  void SetCached(int64_t prompt, const v1::Usage& usage);
  // What comes before the choice's tokens: whose message it is, the prompt.
  // Errors: those of a prompt of ids whose text is wanted.
  absl::Status Begin(size_t choice, const v1::GenerateRequest& turn,
                     const ScoredTokens* scores);
  void Take(size_t choice, const v1::GenerateResponse& message,
            std::function<void(bool)> taken);
  void TakeEnd(size_t choice, const v1::Finished& finished,
               std::function<void(bool)> taken);
  // Sends a part, or keeps it for the whole.
  void Add(size_t choice, const CompletionChoice& part,
           std::function<void(bool)> taken);
  void BeginStream();
  std::vector<std::pair<std::string, std::string>> Headers() const;
  void Finish(size_t choice);
  void EndStream();
  // The n best of each prompt, in the order of prompts, as the member `choices`
  // of a body, and no longer here: one JSON value of all of them would take
  // several times their text's room.
  void AppendChosen(std::string* body);
  nlohmann::json Usage() const;
  // `prompt`: whose call it was.
  void Fail(const absl::Status& of_call, int64_t prompt);
  // Cancels what still runs: no client waits for it.
  void Leave();
  // Sessions that were made for samples go.
  void StopSamples();

  CallDesk* const desk_;
  const absl::Duration ping_;
  const std::shared_ptr<Exchange> exchange_;
  CompletionRequest request_;  // its turns move into their calls
  const ByteHold hold_;
  const ModelFacts& facts_;
  const ChoiceFormat format_;
  std::optional<uint64_t> first_seed_;  // absent: not known yet
  const CompletionHead head_;
  std::vector<Choice> choices_;
  // One entry per prompt. Null: its choices have temporary sessions, or the
  // session of the request.
  std::vector<std::shared_ptr<SampleSessions>> samples_;
  int64_t left_ = 0;  // choices that are not done
  bool ended_ = false;
  std::string session_id_;
  std::shared_ptr<EventStream> stream_;  // null: nothing was sent yet
};

// POST /v1/completions and /v1/chat/completions: the turns of their choices,
// and their answer as a whole or as a stream of server-sent events.

// `api` outlives the request.
void Complete(const HttpApi& api, std::shared_ptr<Exchange> exchange);
void Chat(const HttpApi& api, std::shared_ptr<Exchange> exchange);

// A turn whose prompt has been scored before it runs.

// The turn that begins where the session stood for the scores, so that they are
// those of its own context: where it stands elsewhere by then, the turn is
// refused. The same turn where it has no session. Errors: POSITION_MISMATCH
// where the scores are not of the position that the turn expects.
absl::StatusOr<v1::GenerateRequest> TurnBehind(const v1::ScoreResponse& scores,
                                               v1::GenerateRequest turn);

}  // namespace txl
