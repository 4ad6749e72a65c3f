#include "tests/model/text/hard_texts.h"

namespace txl {

std::string Repeated(const std::string& pattern, size_t bytes) {
  std::string text;
  while (text.size() + pattern.size() <= bytes) text += pattern;
  return text;
}

std::vector<std::string> HardPatterns() {
  return {// Special symbols, and what nearly is one.
          "<unk>", "<unk>a", "<unk>,'", "<UNK>", "<UNK>,'a", "<unk", "<formul",
          "<form", "<", "<eos>\n", "<sep>", "<se", "\x01\x02",
          // Nothing to cut at; pieces inside of pieces.
          "a", "o", "ooooooooooooooox", "th", "thr", "\u00E9", "\u4E00",
          "\uA000", "\U0001F600", "1",
          // Words of one character, abbreviations, numbers.
          "a ", "a. ", "a.. ", "Mr. ", "No. 1 ", "0. ", "1,", "1,1 ", "1.1 ",
          "a.b.", "5 %",
          // Punctuation, alone and in turns.
          ",", ",'", "a,", "'", "a's", "''", "`", "a-a", ".", "..", ". ", ".' ",
          "( ", ") .", "\",.", "\" ", "a\" ", "a!", "&", "\u2018", "a\u2019",
          "\u2026", "\u00AB\u00A0", "\u00BA", "\x7F",
          // Lines and spaces.
          "\n", "\r\n", "a\n", ",\n", "a,'-.\n", " ", " a", "\u00A0", "a\u00A0",
          "\u3000", "\u2581",
          // Longer, shorter or other characters when they are normalized.
          "e\u0301", "\u0301", "\uFDFA", "\uFDFA ", "\uFB01", "\u200B"};
}

}  // namespace txl
