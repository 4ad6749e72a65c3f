#include "model/text/moses_tokenizer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "model/text/moses_classes.h"
#include "model/text/pattern.h"
#include "model/text/sentencepiece_cutter.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

struct TokenizerRule {
  Pattern pattern;
  std::string replacement;
};

// What stands for a protected word while the rules run. Text cannot hold it:
// control characters are dropped before. To the rules the first character is a
// letter, but no lower case one, and the second a digit.
constexpr char kStandIn[] = "\x01\x02";

std::string Letter() { return MosesLetterOr("\\x{1}"); }

std::string Fill(absl::string_view with_classes) {
  return absl::StrReplaceAll(with_classes,
                             {{"{AN}", MosesLetterOr("\\p{Nd}\\x{1}\\x{2}")},
                              {"{A}", Letter()},
                              {"{N}", "(?:\\x{2}|" + MosesNumber() + ")"}});
}

// In this order. {A}: a letter, {N}: a number character, {AN}: either. The
// rules see lines: "." matches no line end, and "$" before each.
std::vector<TokenizerRule>* NewTokenizerRules() {
  const char* const sources[][2] = {
      // Everything but letters, digits, spaces and .'`,- stands alone.
      {R"((?!{AN})[^ .'`,\-\n])", " $0 "},
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
  auto* rules = new std::vector<TokenizerRule>;
  for (const auto& source : sources) {
    rules->push_back({Pattern("(*LF)(?m-s)" + Fill(source[0])), source[1]});
  }
  return rules;
}

// str.split() of Python line by line; "\n" between the lines.
std::vector<std::string> Split(absl::string_view text) {
  std::vector<std::string> words;
  size_t begin = 0;  // of the word
  for (size_t at = 0; at <= text.size();) {
    const Utf8Character next = at < text.size()
                                   ? FirstCharacter(text.substr(at))
                                   : Utf8Character{'\n', 1};
    if (IsWhitespace(next.code_point)) {
      if (at > begin) words.emplace_back(text.substr(begin, at - begin));
      begin = at + next.length;
      if (next.code_point == '\n' && at < text.size()) words.push_back("\n");
    }
    at += next.length;
  }
  return words;
}

// Lines of words with one space between them, without control characters.
std::string Tidy(absl::string_view text) {
  static const Pattern& control = *new Pattern(R"([\x{0}-\x{9}\x{B}-\x{1F}])");
  std::string tidy;
  tidy.reserve(text.size());
  bool between = false;  // words of a line
  for (const std::string& word : Split(text)) {
    if (between && word != "\n") tidy += ' ';
    between = word != "\n";
    tidy += word;
  }
  return control.Replace(tidy, "");
}

bool IsDots(absl::string_view word) {
  return word.size() > 1 &&
         word.find_first_not_of('.') == absl::string_view::npos;
}

// Whether the period at the end of `prefix` + "." belongs to it; `next` is the
// word after it, empty or "\n" at the end of the line.
bool KeepsPeriod(absl::string_view prefix, absl::string_view next) {
  static const Pattern& has_letter = *new Pattern(Letter());
  static const Pattern& starts_lower = *new Pattern("^" + MosesLowerCase());
  if (absl::StrContains(prefix, '.') && has_letter.Matches(prefix)) return true;
  if (IsMosesPrefix(prefix) || starts_lower.Matches(next)) return true;
  return IsMosesNumberPrefix(prefix) && !next.empty() &&
         absl::ascii_isdigit(static_cast<unsigned char>(next[0]));
}

// Appends a word without the period that ends its sentence, and that period.
// `next` as above.
void AppendSplit(std::string word, absl::string_view next,
                 std::vector<std::string>& out) {
  // A period right before the apostrophe that ends the line.
  if ((next.empty() || next == "\n") && absl::EndsWith(word, ".'")) {
    word.resize(word.size() - 2);
    if (!word.empty()) out.push_back(std::move(word));
    out.insert(out.end(), {".", "'"});
    return;
  }
  const bool splits =
      word.size() > 1 && word.back() == '.' && !IsDots(word) &&
      !KeepsPeriod(absl::string_view(word).substr(0, word.size() - 1), next);
  if (splits) word.pop_back();
  out.push_back(std::move(word));
  if (splits) out.push_back(".");
}

std::vector<std::string> SplitPeriods(std::vector<std::string> words) {
  std::vector<std::string> out;
  out.reserve(words.size());
  for (size_t i = 0; i < words.size(); ++i) {
    AppendSplit(std::move(words[i]), i + 1 < words.size() ? words[i + 1] : "",
                out);
  }
  return out;
}

// Puts the stand-in in the place of protected words.
class Protection {
 public:
  Protection(absl::Span<const std::string> words, std::string& text) {
    if (words.empty()) return;
    const PieceIndex index = IndexOf(words);
    const std::string lower = absl::AsciiStrToLower(text);
    std::string out;
    out.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
      const size_t length =
          index.LongestPrefix(absl::string_view(lower).substr(at));
      if (length == 0) {
        out += text[at++];
        continue;
      }
      originals_.push_back(text.substr(at, length));
      out += kStandIn;
      at += length;
    }
    text = std::move(out);
  }

  // The stand-ins of `words` are those that were put in, in the same order: no
  // rule drops, doubles or parts one.
  void Restore(std::vector<std::string>& words) const {
    size_t next = 0;
    for (std::string& word : words) {
      size_t at = word.find(kStandIn);
      if (at == std::string::npos) continue;
      std::string restored;
      size_t done = 0;
      for (; at != std::string::npos && next < originals_.size();
           at = word.find(kStandIn, done)) {
        restored.append(word, done, at - done);
        restored += originals_[next++];
        done = at + sizeof(kStandIn) - 1;
      }
      word = restored.append(word, done, std::string::npos);
    }
  }

 private:
  static PieceIndex IndexOf(absl::Span<const std::string> words) {
    std::vector<std::pair<std::string, int32_t>> entries;
    for (const std::string& word : words) {
      entries.emplace_back(absl::AsciiStrToLower(word), 0);
    }
    std::sort(entries.begin(), entries.end());
    entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
    return PieceIndex(std::move(entries));
  }

  std::vector<std::string> originals_;
};

}  // namespace

std::vector<std::string> MosesWords(
    absl::string_view text, absl::Span<const std::string> protected_words) {
  static const std::vector<TokenizerRule>& rules = *NewTokenizerRules();
  std::string spaced = Tidy(text);
  const Protection protection(protected_words, spaced);
  for (const TokenizerRule& rule : rules) {
    spaced = rule.pattern.Replace(spaced, rule.replacement);
  }
  std::vector<std::string> words = SplitPeriods(Split(spaced));
  protection.Restore(words);
  return words;
}

std::vector<std::string> SplitMosesNumbers(std::vector<std::string> words) {
  static const Pattern& between_digits =
      *new Pattern(R"((?<=\p{Nd})[,.](?=\p{Nd}))");
  std::vector<std::string> out;
  out.reserve(words.size());
  for (std::string& word : words) {
    if (word.size() < 3 || word.find_first_of(",.") == std::string::npos) {
      out.push_back(std::move(word));
      continue;
    }
    std::vector<std::string> pieces =
        Split(between_digits.Replace(word, " @$0@ "));
    std::move(pieces.begin(), pieces.end(), std::back_inserter(out));
  }
  return out;
}

namespace {

struct NormalizerRule {
  Pattern pattern;
  std::string replacement;
};

// In this order; each works on what the one before left. \x{A0}: no-break
// space. None matches a line end.
std::vector<NormalizerRule>* NewNormalizerRules() {
  const char* const sources[][2] = {
      // Spaces at parentheses and punctuation.
      {R"(\r)", ""},
      {R"(\()", " ("},
      {R"(\))", ") "},
      {" +", " "},
      {R"(\) ([.!:?;,]))", ")$1"},
      {R"(\( )", "("},
      {R"( \))", ")"},
      {R"((\p{Nd}) %)", "$1%"},
      {" :", ":"},
      {" ;", ";"},
      // Quotes made of accents.
      {"`", "'"},
      {"''", " \" "},
      // Typographic quotes, dashes, ellipsis.
      {"[\u201E\u201C\u201D]", "\""},
      {"\u2013", "-"},
      {"\u2014", " - "},
      {" +", " "},
      {"\u00B4", "'"},
      // Two rules, not one class: each takes the letters around its mark.
      {"([a-zA-Z])\u2018([a-zA-Z])", "$1'$2"},
      {"([a-zA-Z])\u2019([a-zA-Z])", "$1'$2"},
      {"[\u2018\u201A\u2019]", "'"},
      {"''", "\""},
      {"\u2026", "..."},
      // French quotes.
      {"\\x{A0}\u00AB\\x{A0}", "\""},
      {"\u00AB\\x{A0}", "\""},
      {"\u00AB", "\""},
      {"\\x{A0}\u00BB\\x{A0}", "\""},
      {"\\x{A0}\u00BB", "\""},
      {"\u00BB", "\""},
      // No-break spaces.
      {R"(\x{A0}%)", "%"},
      {"n\u00BA\\x{A0}", "n\u00BA "},
      {R"(\x{A0}:)", ":"},
      {"\\x{A0}\u00BAC", " \u00BAC"},
      {R"(\x{A0}cm)", " cm"},
      {R"(\x{A0}\?)", "?"},
      {R"(\x{A0}!)", "!"},
      {R"(\x{A0};)", ";"},
      {R"(,\x{A0})", ", "},
      {" +", " "},
      // English: the quote follows commas and periods.
      {R"("([,.]+))", "$1\""},
      {R"((\p{Nd})\x{A0}(\p{Nd}))", "$1.$2"},
  };
  auto* rules = new std::vector<NormalizerRule>;
  for (const auto& source : sources) {
    rules->push_back({Pattern(source[0]), source[1]});
  }
  return rules;
}

}  // namespace

std::string NormalizeMosesPunctuation(absl::string_view text) {
  static const std::vector<NormalizerRule>& rules = *NewNormalizerRules();
  std::string normalized(text);
  for (const NormalizerRule& rule : rules) {
    normalized = rule.pattern.Replace(normalized, rule.replacement);
  }
  return normalized;
}

}  // namespace txl
