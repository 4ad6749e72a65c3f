// Any text as a kinds.json: an error or kinds that survive being written, and
// whose rules hold for every id.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "model/config/token_kinds_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kVocabSize = 100;
  const std::string text(data, data + size);
  const auto kinds = txl::ParseTokenKinds(text, "kinds.json", kVocabSize);
  if (!kinds.ok()) return 0;
  const std::string written = txl::TokenKindsToJson(kinds->kinds());
  const auto again = txl::ParseTokenKinds(written, "kinds.json", kVocabSize);
  if (!again.ok() || txl::TokenKindsToJson(again->kinds()) != written) abort();
  for (int32_t last = -1; last <= kVocabSize; ++last) {
    std::vector<double> logprobs(kVocabSize);
    kinds->Forbid(last, absl::MakeSpan(logprobs));
    bool leaves_one = false;
    for (const double each : logprobs) leaves_one = leaves_one || each == 0;
    if (!leaves_one || !(kinds->After(last).next_temperature > 0)) abort();
  }
  return 0;
}
