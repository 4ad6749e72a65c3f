#include "tests/model/text/every_vocabulary.h"

#include <cstdlib>
#include <numeric>
#include <utility>

#include "absl/strings/str_format.h"
#include "model/text/byte_vocabulary.h"
#include "model/text/digit_vocabulary.h"
#include "model/text/sentencepiece_vocabulary.h"
#include "model/text/symbol_vocabulary.h"
#include "model/text/wikitext_vocabulary.h"
#include "tests/model/text/character_map_writer.h"

namespace txl {
namespace {

using Algorithm = SentencePieceModel::Algorithm;

std::vector<unsigned char> AllBytesBackwards() {
  std::vector<unsigned char> bytes(256);
  std::iota(bytes.rbegin(), bytes.rend(), 0);
  return bytes;
}

std::vector<std::string> Letters() {
  std::vector<std::string> letters = {"\n"};
  for (char c = ' '; c <= '~'; ++c) letters.emplace_back(1, c);
  return letters;
}

std::vector<std::string> Words() {
  return {"<eos>", "<unk>",   "but",    "soft",   "!",      "what",
          "light", "through", "yonder", "window", "breaks", "soft!",
          "'s",    "@-@",     "@,@",    "@.@",    ",",      ".",
          "3",     "\"",      "(",      "\u00E9"};
}

std::unique_ptr<Vocabulary> Symbols(SymbolRules rules, bool by_letter) {
  std::vector<std::string> symbols = by_letter ? Letters() : Words();
  return std::make_unique<SymbolVocabulary>("symbols", std::move(symbols),
                                            rules);
}

std::unique_ptr<Vocabulary> Wikitext(bool lines_and_case) {
  WikitextRules rules;
  rules.unknown_id = 1;
  if (lines_and_case) rules.line_id = 0;
  rules.lower_case = !lines_and_case;
  rules.special = {"<formula>", "<form"};
  std::vector<std::string> words = Words();
  words.push_back("<formula>");
  return std::make_unique<WikitextVocabulary>(std::move(words), rules);
}

SentencePieceModel Pieces(Algorithm algorithm, bool with_bytes) {
  SentencePieceModel model;
  model.algorithm = algorithm;
  model.byte_fallback = with_bytes;
  model.pieces.push_back({"<unk>", 0, PieceType::kUnknown});
  model.pieces.push_back({"<s>", 0, PieceType::kControl});
  model.pieces.push_back({"<sep>", 0, PieceType::kUserDefined});
  model.pieces.push_back({"<se", 0, PieceType::kUserDefined});
  const char* const texts[] = {
      "\u2581", "a",    "b",       "e",       "h",        "i",
      "o",      "s",    "t",       "u",       "w",        "l",
      "g",      "th",   "he",      "the",     "\u2581th", "\u2581wh",
      "at",     "oo",   "oooo",    "ooooooo", "\u0635",   "\u0644",
      "ou",     "ight", "\u2581l", "fi",      "\u00E9",   "oooooooooooooooo"};
  float score = -1;
  for (const char* text : texts) {
    model.pieces.push_back({text, score -= 0.25f, PieceType::kNormal});
  }
  model.pieces.push_back({"thr", -3, PieceType::kUnused});
  for (int byte = 0; with_bytes && byte < 256; ++byte) {
    model.pieces.push_back(
        {absl::StrFormat("<0x%02X>", byte), 0, PieceType::kByte});
  }
  model.character_map = CharacterMapBytes(
      {{"\n", " "},
       {"\t", " "},
       {"\u3000", " "},
       {"\uFB01", "fi"},
       {"e\u0301", "\u00E9"},
       {"\u200B", ""},
       {"\uFDFA",
        "\u0635\u0644\u0649 \u0627\u0644\u0644\u0647 \u0639\u0644\u064A\u0647 "
        "\u0648\u0633\u0644\u0645"}});
  return model;
}

std::unique_ptr<Vocabulary> SentencePieces(SentencePieceModel model) {
  const auto size = static_cast<int64_t>(model.pieces.size());
  auto made = SentencePieceVocabulary::Create(std::move(model), size + 1);
  if (!made.ok()) std::abort();
  return *std::move(made);
}

// A model that does not change the text.
SentencePieceModel Untidy(SentencePieceModel model) {
  model.character_map = "";
  model.add_dummy_prefix = false;
  model.remove_extra_whitespace = false;
  return model;
}

void AddSymbols(std::vector<NamedVocabulary>& all) {
  SymbolRules words;
  words.unknown_id = 1;
  words.line_id = 0;
  all.push_back({"symbols", Symbols(words, false), true, false});
  words.lower_case = true;
  words.split = SymbolSplit::kSpace;
  words.double_line_tokens = true;
  all.push_back({"symbols, lines in pairs", Symbols(words, false), true});
  SymbolRules strict;
  all.push_back({"symbols without an unknown", Symbols(strict, false), false});
  all.back().text = "but soft! what light through yonder window breaks . . . ";
  SymbolRules letters;
  letters.split = SymbolSplit::kCharacters;
  all.push_back({"characters", Symbols(letters, true), false, true});
  letters.space_id = '_' - ' ' + 1;
  letters.lower_case = true;
  letters.unknown_id = 5;
  all.push_back({"characters, lower case", Symbols(letters, true), true});
}

}  // namespace

std::vector<NamedVocabulary> EveryVocabulary() {
  std::vector<NamedVocabulary> all;
  all.push_back({"bytes", std::make_unique<ByteVocabulary>(), true, true});
  all.push_back({"decimal_bytes",
                 std::make_unique<DecimalByteVocabulary>(AllBytesBackwards()),
                 true, true});
  all.push_back({"digits", std::make_unique<DigitVocabulary>(10), false});
  all.back().text = "3 1 4 1 5 9 2 6 5 3 5 8 ";
  AddSymbols(all);
  all.push_back({"wikitext", Wikitext(true), true});
  all.push_back({"wikitext, lower case without lines", Wikitext(false), true});
  all.push_back({"unigram with bytes",
                 SentencePieces(Pieces(Algorithm::kUnigram, true)), true});
  all.push_back({"unigram, whole text",
                 SentencePieces(Untidy(Pieces(Algorithm::kUnigram, true))),
                 true});
  all.push_back(
      {"unigram", SentencePieces(Pieces(Algorithm::kUnigram, false)), true});
  all.push_back(
      {"bpe with bytes", SentencePieces(Pieces(Algorithm::kBpe, true)), true});
  SentencePieceModel suffix = Pieces(Algorithm::kBpe, false);
  suffix.whitespace_is_suffix = true;
  all.push_back({"bpe, spaces behind", SentencePieces(suffix), true});
  return all;
}

}  // namespace txl
