#include "model/text/moses_tokenizer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "model/text/moses_classes.h"
#include "model/text/moses_prefixes.h"
#include "model/text/pattern.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

struct Rule {
  Pattern pattern;
  std::string replacement;
};

std::string Fill(absl::string_view with_classes) {
  return absl::StrReplaceAll(with_classes, {{"{AN}", MosesLetterOrDigit()},
                                            {"{A}", MosesLetter()},
                                            {"{N}", MosesNumber()},
                                            {"{a}", MosesLowerCase()}});
}

// In this order. {A}: a letter, {N}: a number character, {AN}: either.
std::vector<Rule>* NewRules() {
  const char* const sources[][2] = {
      // Everything but letters, digits, spaces and .'`,- stands alone.
      {R"((?!{AN})[^ .'`,\-])", " $0 "},
      {"({AN})-(?={AN})", "$1 @-@ "},
      {R"(\.{2,})", " $0 "},
      // Commas, unless they are inside numbers.
      {"((?!{N}).),", "$1 , "},
      {",((?!{N}).)", " , $1"},
      {"({N}),$", "$1 , "},
      // Apostrophes.
      {"((?!{A}).)'((?!{A}).)", "$1 ' $2"},
      {"((?!{A}|{N}).)'({A})", "$1 ' $2"},
      {"({A})'((?!{A}).)", "$1 ' $2"},
      {"({A})'({A})", "$1 '$2"},
      {"({N})'(s)", "$1 '$2"},
  };
  auto* rules = new std::vector<Rule>;
  for (const auto& source : sources) {
    rules->push_back({Pattern(Fill(source[0])), source[1]});
  }
  return rules;
}

// str.split() of Python.
std::vector<std::string> Split(absl::string_view text) {
  std::vector<std::string> words;
  std::string word;
  while (!text.empty()) {
    const Utf8Character next = FirstCharacter(text);
    if (!IsWhitespace(next.code_point)) {
      word.append(text.data(), next.length);
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
    text.remove_prefix(next.length);
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

bool IsDots(absl::string_view word) {
  return word.size() > 1 &&
         word.find_first_not_of('.') == absl::string_view::npos;
}

// Whether the period at the end of `prefix` + "." belongs to it; `next` is the
// word after it, empty at the end of the line.
bool KeepsPeriod(absl::string_view prefix, absl::string_view next) {
  static const Pattern& has_letter = *new Pattern(MosesLetter());
  static const Pattern& starts_lower = *new Pattern("^" + MosesLowerCase());
  if (absl::StrContains(prefix, '.') && has_letter.Matches(prefix)) return true;
  if (IsMosesPrefix(prefix) || starts_lower.Matches(next)) return true;
  return IsMosesNumberPrefix(prefix) && !next.empty() &&
         absl::ascii_isdigit(static_cast<unsigned char>(next[0]));
}

void SplitPeriods(std::vector<std::string>& words) {
  std::vector<std::string> out;
  out.reserve(words.size());
  for (size_t i = 0; i < words.size(); ++i) {
    std::string& word = words[i];
    const bool splits =
        word.size() > 1 && word.back() == '.' && !IsDots(word) &&
        !KeepsPeriod(absl::string_view(word).substr(0, word.size() - 1),
                     i + 1 < words.size() ? words[i + 1] : "");
    if (splits) word.pop_back();
    out.push_back(std::move(word));
    if (splits) out.push_back(".");
  }
  words = std::move(out);
}

// A period right before the apostrophe that ends the line.
void SplitLastPeriodAndApostrophe(std::vector<std::string>& words) {
  if (words.empty() || !absl::EndsWith(words.back(), ".'")) return;
  std::string& last = words.back();
  last.resize(last.size() - 2);
  if (last.empty()) words.pop_back();
  words.push_back(".");
  words.push_back("'");
}

// Protected words are replaced by a stand-in while the rules run: to them it
// is a word that starts with a letter and ends with a digit.
class Protection {
 public:
  Protection(absl::Span<const std::string> words, std::string& text) {
    if (words.empty()) return;
    stand_in_ = Unused(text) + "0";
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const absl::string_view rest = absl::string_view(text).substr(at);
      const size_t length = LongestAt(words, rest);
      if (length == 0) {
        out += text[at++];
        continue;
      }
      originals_.emplace_back(rest.substr(0, length));
      out += stand_in_;
      at += length;
    }
    text = std::move(out);
  }

  void Restore(std::vector<std::string>& words) {
    if (originals_.empty()) return;
    size_t next = 0;
    for (std::string& word : words) {
      for (size_t at = word.find(stand_in_); at != std::string::npos;
           at = word.find(stand_in_, at)) {
        word.replace(at, stand_in_.size(), originals_[next]);
        at += originals_[next++].size();
      }
    }
  }

 private:
  // A letter that is not lower case and does not occur in `text`.
  static std::string Unused(absl::string_view text) {
    // Yi syllables, U+A000 to U+A48C; a text with all of them is no text.
    for (int c = 0xA000; c < 0xA48C; ++c) {
      const char encoded[] = {static_cast<char>(0xE0 | (c >> 12)),
                              static_cast<char>(0x80 | ((c >> 6) & 0x3F)),
                              static_cast<char>(0x80 | (c & 0x3F))};
      const std::string letter(encoded, sizeof(encoded));
      if (!absl::StrContains(text, letter)) return letter;
    }
    return "\xEA\x92\x8C";
  }

  static size_t LongestAt(absl::Span<const std::string> words,
                          absl::string_view text) {
    size_t longest = 0;
    for (const std::string& word : words) {
      if (absl::StartsWithIgnoreCase(text, word)) {
        longest = std::max(longest, word.size());
      }
    }
    return longest;
  }

  std::string stand_in_;
  std::vector<std::string> originals_;
};

}  // namespace

std::vector<std::string> MosesWords(
    absl::string_view line, absl::Span<const std::string> protected_words) {
  static const std::vector<Rule>& rules = *NewRules();
  static const Pattern& control = *new Pattern(R"([\x{0}-\x{1F}])");
  std::string text = control.Replace(absl::StrJoin(Split(line), " "), "");
  Protection protection(protected_words, text);
  for (const Rule& rule : rules) {
    text = rule.pattern.Replace(text, rule.replacement);
  }
  std::vector<std::string> words = Split(text);
  SplitPeriods(words);
  SplitLastPeriodAndApostrophe(words);
  protection.Restore(words);
  return words;
}

std::vector<std::string> SplitMosesNumbers(
    absl::Span<const std::string> words) {
  static const Pattern& between_digits =
      *new Pattern(R"((?<=\p{Nd})[,.](?=\p{Nd}))");
  std::vector<std::string> out;
  for (const std::string& word : words) {
    if (word.find_first_of(",.") == std::string::npos) {
      out.push_back(word);
      continue;
    }
    std::vector<std::string> pieces =
        Split(between_digits.Replace(word, " @$0@ "));
    std::move(pieces.begin(), pieces.end(), std::back_inserter(out));
  }
  return out;
}

}  // namespace txl
