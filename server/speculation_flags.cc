#include "server/speculation_flags.h"

namespace txl {

void AddGuessFlags(std::string* speculate, int32_t* tokens, std::string* draft,
                   FlagTable* table) {
  table->Choice("speculate", speculate, {"auto", "off"},
                "Feed guesses of a stream's next tokens along with it, where "
                "the same tokens come of it to the bit (the native step on the "
                "CPU) and they are right often enough; off: never");
  table->Number("speculate-tokens", tokens, 1, 64,
                "Tokens that are guessed of one stream in a step at most");
  table->Text("draft", draft,
              "Model directory of a small model with the same vocabulary that "
              "guesses, too, where its steps are worth it; empty: none");
}

}  // namespace txl
