#include "model/text/moses_detokenizer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "model/text/moses_classes.h"
#include "model/text/pattern.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

constexpr absl::string_view kJoin = "@-@";
constexpr absl::string_view kFreshState = "00000  ";

// Whether a word of this script takes no space after another one of it.
bool IsCjk(int32_t c) {
  static constexpr struct {
    int32_t begin, end;
  } kRanges[] = {{4352, 4607},     {11904, 42191},  {43072, 43135},
                 {44032, 55215},   {63744, 64255},  {65072, 65103},
                 {65381, 65500},   {94208, 101119}, {110592, 110895},
                 {110960, 111359}, {131072, 196607}};
  for (const auto& range : kRanges) {
    if (c >= range.begin && c <= range.end) return true;
  }
  return false;
}

bool StartsCjk(absl::string_view word) {
  return IsCjk(FirstCharacter(word).code_point);
}

std::string LastCharacter(absl::string_view word) {
  size_t begin = word.size() - 1;
  while ((word[begin] & 0xC0) == 0x80) --begin;
  return std::string(word.substr(begin));
}

// Whether `word` can be what Add makes of a part between spaces.
bool IsWord(absl::string_view word) {
  if (word.empty() || !IsValidUtf8(word)) return false;
  while (!word.empty()) {
    const Utf8Character next = FirstCharacter(word);
    if (IsWhitespace(next.code_point)) return false;
    word.remove_prefix(next.length);
  }
  return true;
}

// Typographic quotes count as straight ones.
std::string PlainQuote(const std::string& word) {
  const bool typographic =
      word.find_first_not_of("\u201E\u201C") == std::string::npos;
  return typographic ? "\"" : word;
}

// Names of characters that older or escaped vocabularies hold.
std::string Unescaped(absl::string_view word) {
  if (!absl::StrContains(word, '&')) return std::string(word);
  return absl::StrReplaceAll(word, {{"&bar;", "|"},
                                    {"&#124;", "|"},
                                    {"&lt;", "<"},
                                    {"&gt;", ">"},
                                    {"&bra;", "["},
                                    {"&ket;", "]"},
                                    {"&quot;", "\""},
                                    {"&apos;", "'"},
                                    {"&#91;", "["},
                                    {"&#93;", "]"},
                                    {"&amp;", "&"}});
}

}  // namespace

std::string StreamReplacer::Push(absl::string_view text) {
  held_.append(text.data(), text.size());
  std::string out;
  size_t at = 0;
  for (size_t found = held_.find(from_.data(), at, from_.size());
       found != std::string::npos;
       found = held_.find(from_.data(), at, from_.size())) {
    absl::StrAppend(&out, absl::string_view(held_).substr(at, found - at), to_);
    at = found + from_.size();
  }
  const absl::string_view rest = absl::string_view(held_).substr(at);
  size_t keep = std::min(rest.size(), from_.size() - 1);
  while (!absl::EndsWith(rest, from_.substr(0, keep))) --keep;
  absl::StrAppend(&out, rest.substr(0, rest.size() - keep));
  held_ = std::string(rest.substr(rest.size() - keep));
  return out;
}

std::string StreamReplacer::Flush() { return std::exchange(held_, ""); }

std::string MosesDetokenizer::Add(absl::string_view word) {
  std::string out;
  if (word == kJoin && !joins_) {
    // After a flush the joined word is closed; this goes on where it ended.
    glue_ = glue_ || (shape_ == Shape::kNone && !first_);
    Extend("-", out);
    joins_ = true;
    return periods_.Push(commas_.Push(out));
  }
  const std::string unescaped = Unescaped(word);
  for (absl::string_view rest = unescaped; !rest.empty();) {
    const Utf8Character next = FirstCharacter(rest);
    if (IsWhitespace(next.code_point)) {
      EndWord(out);
      rest.remove_prefix(next.length);
      continue;
    }
    size_t size = 0;
    while (size < rest.size()) {
      const Utf8Character inside = FirstCharacter(rest.substr(size));
      if (IsWhitespace(inside.code_point)) break;
      size += inside.length;
    }
    if (!joins_) EndWord(out);
    Extend(rest.substr(0, size), out);
    joins_ = false;
    rest.remove_prefix(size);
  }
  return periods_.Push(commas_.Push(out));
}

std::string MosesDetokenizer::Flush() {
  std::string out;
  EndWord(out);
  joins_ = false;
  // One after the other: the order of operands is not the order of calls.
  out = commas_.Push(out);
  out += commas_.Flush();
  out = periods_.Push(out);
  out += periods_.Flush();
  return out;
}

MosesDetokenizer::Shape MosesDetokenizer::ShapeOf(
    absl::string_view word) const {
  static const Pattern& currency =
      *new Pattern(R"(^(?:(?![\x{20BE}-\x{20C0}])[\p{Sc}([{\x{BF}\x{A1}])+$)");
  static const Pattern& punctuation = *new Pattern(R"(^[,.?!:;\\%}\])]+$)");
  static const Pattern& contraction = *new Pattern("^'" + MosesLetter());
  static const Pattern& quote = *new Pattern(R"(^['"\x{201E}\x{201C}`]+$)");
  if (StartsCjk(word)) return Shape::kOrdinary;
  if (currency.Matches(word)) return Shape::kCurrency;
  if (punctuation.Matches(word)) return Shape::kPunctuation;
  if (!first_ && contraction.Matches(word)) return Shape::kContraction;
  if (quote.Matches(word)) return Shape::kQuote;
  return Shape::kOrdinary;
}

// Looks at the word again after it grew, and lets out what is certain.
void MosesDetokenizer::Extend(absl::string_view part, std::string& out) {
  if (shape_ == Shape::kOrdinary || shape_ == Shape::kContraction) {
    out.append(part.data(), part.size());  // it stays what it is
    word_ = std::string(part);
    return;
  }
  word_.append(part.data(), part.size());
  shape_ = ShapeOf(word_);
  if (shape_ == Shape::kPunctuation || shape_ == Shape::kQuote) return;
  if (out_bytes_ == 0 && shape_ != Shape::kContraction && FollowsSpace(word_)) {
    out += ' ';
  }
  out.append(word_, out_bytes_, std::string::npos);
  out_bytes_ = word_.size();
}

bool MosesDetokenizer::FollowsSpace(absl::string_view word) const {
  if (first_ || glue_) return false;
  // An ideograph right after another.
  return !(StartsCjk(word) && !last_word_end_.empty() &&
           StartsCjk(last_word_end_));
}

void MosesDetokenizer::EndWord(std::string& out) {
  if (shape_ == Shape::kNone) return;
  if (shape_ == Shape::kQuote) {
    EndQuote(out);
  } else {
    if (shape_ == Shape::kPunctuation) out += word_;
    glue_ = shape_ == Shape::kCurrency;
  }
  last_word_end_ = LastCharacter(word_);
  first_ = false;
  shape_ = Shape::kNone;
  word_.clear();
  out_bytes_ = 0;
}

// The first of two equal quotes opens and glues to the next word, the second
// closes; an apostrophe after an "s" is a possessive.
void MosesDetokenizer::EndQuote(std::string& out) {
  const std::string quote = PlainQuote(word_);
  const bool opens = open_quotes_.count(quote) == 0;
  if (opens && word_ == "'" && last_word_end_ == "s") {
    out += word_;
    glue_ = false;
    return;
  }
  if (opens && FollowsSpace(word_)) out += ' ';
  out += word_;
  glue_ = opens;
  if (opens) {
    open_quotes_.insert(quote);
  } else {
    open_quotes_.erase(quote);
  }
}

std::string MosesDetokenizer::State() const {
  // Of a word that is out only the end still matters, and how it began does
  // not.
  const bool is_out =
      shape_ == Shape::kOrdinary || shape_ == Shape::kContraction;
  const Shape shape = is_out ? Shape::kOrdinary : shape_;
  std::string state =
      absl::StrCat(static_cast<int>(shape), joins_ ? 1 : 0, glue_ ? 1 : 0,
                   commas_.held_bytes(), periods_.held_bytes(), " ",
                   is_out ? LastCharacter(word_) : word_, " ", last_word_end_);
  for (const std::string& quote : open_quotes_) {
    absl::StrAppend(&state, " ", quote);
  }
  return state == kFreshState ? "" : state;
}

bool MosesDetokenizer::SetState(absl::string_view state) {
  *this = MosesDetokenizer();
  if (state.empty()) return true;
  const std::vector<absl::string_view> parts = absl::StrSplit(state, ' ');
  if (parts.size() < 3 || parts[0].size() != 5) return false;
  int digits[5];
  for (size_t i = 0; i < 5; ++i) {
    digits[i] = parts[0][i] - '0';
    if (digits[i] < 0 || digits[i] > 4) return false;
  }
  shape_ = static_cast<Shape>(digits[0]);
  joins_ = digits[1] != 0;
  glue_ = digits[2] != 0;
  commas_.Hold(static_cast<size_t>(digits[3]));
  periods_.Hold(static_cast<size_t>(digits[4]));
  word_ = std::string(parts[1]);
  last_word_end_ = std::string(parts[2]);
  first_ = last_word_end_.empty();
  if (shape_ == Shape::kOrdinary || shape_ == Shape::kCurrency) {
    out_bytes_ = word_.size();
  }
  for (size_t i = 3; i < parts.size(); ++i) {
    open_quotes_.emplace(parts[i]);
  }
  if (IsSound() && state == State()) return true;
  *this = MosesDetokenizer();
  return false;
}

// What holds after any Add and Flush, of what SetState reads.
bool MosesDetokenizer::IsSound() const {
  for (const std::string& quote : open_quotes_) {
    if (!IsWord(quote) || ShapeOf(quote) != Shape::kQuote ||
        PlainQuote(quote) != quote) {
      return false;
    }
  }
  if (!first_ && (!IsWord(last_word_end_) ||
                  LastCharacter(last_word_end_) != last_word_end_)) {
    return false;
  }
  if (first_ && (glue_ || !open_quotes_.empty())) return false;
  if (shape_ == Shape::kNone) return word_.empty() && !(joins_ && first_);
  if (!IsWord(word_)) return false;
  if (shape_ == Shape::kOrdinary) return LastCharacter(word_) == word_;
  return ShapeOf(word_) == shape_ && !joins_;
}

}  // namespace txl
