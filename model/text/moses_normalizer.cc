#include <string>
#include <vector>

#include "model/text/moses_tokenizer.h"
#include "model/text/pattern.h"

namespace txl {
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
