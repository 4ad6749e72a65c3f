#include "program/unknown_flag.h"

#include "program/flag_checks.h"

namespace txl {

void AddUnknownFlag(CLI::App& command, std::string* word) {
  command
      .add_option("--unknown", *word,
                  "text without a symbol: leave it out, or take the unknown "
                  "symbol [default: the symbol where the vocabulary has one, "
                  "else refused]")
      ->transform(OneOf({kSkipUnknown, kUnknownSymbol}));
}

}  // namespace txl
