#pragma once

// The text of one turn and its end: stop rules in their order (end token, stop
// token or its count, stop text, max_tokens), held-back text, the detokenizer
// that runs ahead of the session's.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "model/text/stop_text_matcher.h"
#include "model/text/vocabulary.h"
#include "server/scheduler/turn.h"

namespace txl {

class TurnText {
 public:
  // `detokenizer`: a copy of the session's; null for a model of ids only,
  // whose texts are all empty.
  TurnText(StopRules rules, std::unique_ptr<Detokenizer> detokenizer);

  // Takes the ids of the turn's input, which is a text of its own: the text
  // before and the text after it meet no half character of it. Returns its
  // pieces, one per id (the last one with the held rest).
  std::vector<std::string> AddInput(absl::Span<const int32_t> ids);

  struct Piece {
    std::string text;       // certain
    int32_t held_back = 0;  // as TokenEvent::held_back
    std::optional<FinishReason> reason;
    std::string matched_stop_text;  // kStopText
  };
  // The next generated token. REQUIRES: no reason given before.
  Piece AddGenerated(int32_t id);

  // The held-back rest, for the turn's end; empty after a stop text.
  std::string TakeRest();

  // The state after everything added; to be committed with it.
  std::unique_ptr<Detokenizer> TakeDetokenizer();

 private:
  bool IsStopToken(int32_t id);
  // Held by the detokenizer, which keeps it: a session may go on in the middle
  // of a character.
  std::string HeldCharacter() const;

  const StopRules rules_;
  std::unique_ptr<Detokenizer> detokenizer_;
  StopTextMatcher matcher_;
  int32_t generated_ = 0;
  int32_t counted_ = 0;              // occurrences of the rules' counted token
  std::optional<std::string> rest_;  // fixed at the end
};

}  // namespace txl
