#pragma once

// Words back into text, one at a time: the rules of Moses' detokenizer.perl for
// English (in the form of its Python port), then "@,@" and "@.@" undone. What
// comes out in pieces equals what the rules make of all words at once.
//
// Ordinary words come out at once. Held until the next word arrives: closing
// punctuation and quotes (a "@-@" after them would make another word of them),
// and "@,@" or "@.@" (dissolved only when a word with a space before it
// follows).

#include <cstddef>
#include <set>
#include <string>

#include "absl/strings/string_view.h"

namespace txl {

// Replaces a literal text in a stream; holds the longest end of the text so far
// that is a proper prefix of it. Copyable.
class StreamReplacer {
 public:
  // REQUIRES: both outlive the object; from is not empty.
  StreamReplacer(absl::string_view from, absl::string_view to)
      : from_(from), to_(to) {}
  std::string Push(absl::string_view text);
  std::string Flush();

  size_t held_bytes() const { return held_.size(); }
  // Holds so many bytes of `from`. REQUIRES: fewer than it has.
  void Hold(size_t bytes) { held_ = std::string(from_.substr(0, bytes)); }

 private:
  absl::string_view from_;
  absl::string_view to_;
  std::string held_;
};

// One line of text. Copyable; not thread-safe.
class MosesDetokenizer {
 public:
  // `word`: valid UTF-8. Whitespace in it parts words.
  std::string Add(absl::string_view word);
  // The held rest. The next word goes on in the same line.
  std::string Flush();

  // See Detokenizer. Five digits (shape, joins, glue, bytes held of a "@,@" and
  // of a "@.@"), the word, the end of the last one, and the open quotes, each
  // after a space.
  std::string State() const;
  bool SetState(absl::string_view state);

 private:
  // What the part of a word that has arrived is. Parts are joined by "@-@".
  // The numbers are those of State.
  enum class Shape {
    kNone = 0,         // no word has begun
    kOrdinary = 1,     // already out
    kCurrency = 2,     // out; glues to the next word
    kPunctuation = 3,  // held
    kQuote = 4,        // held
    kContraction = 5,  // 's, 're: out, without a space before
  };

  void Extend(absl::string_view part, std::string& out);
  Shape ShapeOf(absl::string_view word) const;
  void EndWord(std::string& out);
  void EndQuote(std::string& out);
  bool FollowsSpace(absl::string_view word) const;
  bool IsSound() const;

  Shape shape_ = Shape::kNone;
  std::string word_;           // the word so far; once ordinary, its last part
  size_t out_bytes_ = 0;       // of word_, already out
  bool joins_ = false;         // a "@-@" ended the text so far
  bool first_ = true;          // word_ is the first of the line
  bool glue_ = false;          // no space before word_
  std::string last_word_end_;  // last character of the word before
  std::set<std::string> open_quotes_;
  StreamReplacer commas_{" @,@ ", ","};
  StreamReplacer periods_{" @.@ ", "."};
};

}  // namespace txl
