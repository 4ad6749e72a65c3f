#pragma once

// Finds stop texts in streamed text, also across token borders, and holds back
// text that may be the start of one: always the longest end of the text so far
// that is a proper prefix of a stop text. Stop texts and pushed text are valid
// UTF-8, and so is each piece that comes out.
//
// Every stop text is followed by the automaton of Knuth, Morris and Pratt
// (1977), so the work per byte does not grow with the held text.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace txl {

class StopTextMatcher {
 public:
  struct Output {
    std::string text;  // certain: may be sent
    // The stop text that ended the stream; `text` then ends where it starts
    // (or, with include_stop_text, where it ends). The earliest end wins, of
    // equal ends the longest.
    std::optional<std::string> matched;
  };

  // Empty stop texts match nothing.
  StopTextMatcher(std::vector<std::string> stop_texts, bool include_stop_text);

  // REQUIRES: nothing matched before.
  Output Push(absl::string_view text);
  // The text that is held back now.
  const std::string& held() const { return held_; }
  // The held-back text, when the turn ends otherwise.
  std::string Flush();

 private:
  struct Pattern {
    std::string text;
    // borders[n]: length of the longest proper prefix of text[0, n) that is
    // also its suffix; borders[0] is unused.
    std::vector<size_t> borders;
    size_t matched = 0;  // bytes of `text` that the pushed text ends with
  };

  static std::vector<size_t> Borders(absl::string_view text);
  // Follows `byte`; the longest stop text that ends with it, or null.
  const Pattern* Advance(char byte);

  std::vector<Pattern> patterns_;
  bool include_stop_text_;
  std::string held_;
};

}  // namespace txl
