// Every vocabulary on any text and any ids. The first byte of the input chooses
// the vocabulary, the second what is done; the rest is the text, or ids of two
// bytes each.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "model/text/utf8.h"
#include "tests/model/text/every_vocabulary.h"

namespace txl {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void CheckIds(const std::vector<int32_t>& ids, const Vocabulary& vocabulary) {
  for (const int32_t id : ids) Require(id >= 0 && id < vocabulary.size());
}

void Encode(const NamedVocabulary& named, const std::string& text) {
  const Vocabulary& vocabulary = *named.vocabulary;
  const auto ids = vocabulary.Encode(text);
  const auto document = vocabulary.EncodeDocument(text);
  if (document.ok()) CheckIds(*document, vocabulary);
  const auto skipped = vocabulary.Encode(text, {.skip_unknown = true});
  Require(skipped.ok() || !IsValidUtf8(text));
  if (skipped.ok()) CheckIds(*skipped, vocabulary);
  if (!ids.ok()) {
    Require(absl::IsInvalidArgument(ids.status()));
    Require(!named.knows_all_text || !IsValidUtf8(text));
    return;
  }
  CheckIds(*ids, vocabulary);
  Require(skipped.ok() && skipped->size() <= ids->size());
  const auto count = static_cast<int64_t>(ids->size());
  const auto enough = vocabulary.Encode(text, {.max_tokens = count});
  Require(enough.ok() && *enough == *ids);
  for (const int64_t limit : {count - 1, count / 2}) {
    if (limit < 0 || limit >= count) continue;
    Require(absl::IsOutOfRange(
        vocabulary.Encode(text, {.max_tokens = limit}).status()));
  }
  const std::string decoded = *vocabulary.Decode(*ids);
  Require(IsValidUtf8(decoded));
  if (named.comes_back) Require(decoded == ReplaceInvalidUtf8(text));
}

// Any bytes as a detokenizer's state: refused, or what it says it is.
void Restore(const Vocabulary& vocabulary, const std::string& bytes) {
  const auto restored = vocabulary.RestoreDetokenizer(bytes);
  if (!restored.ok()) {
    Require(absl::IsInvalidArgument(restored.status()));
    return;
  }
  Require((*restored)->State() == bytes);
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    Require(IsValidUtf8((*restored)->Add(id)));
  }
}

// In a stream, with a copy made on the way, then a restored one, as in one
// piece.
void Decode(const Vocabulary& vocabulary, const std::string& bytes) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const int32_t number = static_cast<unsigned char>(bytes[i]) << 8 |
                           static_cast<unsigned char>(bytes[i + 1]);
    ids.push_back(static_cast<int32_t>(number % vocabulary.size()));
    vocabulary.TokenBytes(ids.back());
  }
  auto detokenizer = vocabulary.NewDetokenizer();
  std::string streamed;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i == ids.size() / 2) detokenizer = detokenizer->Clone();
    if (i == ids.size() / 4) {
      auto restored = vocabulary.RestoreDetokenizer(detokenizer->State());
      Require(restored.ok());
      detokenizer = *std::move(restored);
    }
    const std::string piece = detokenizer->Add(ids[i]);
    Require(IsValidUtf8(piece));
    streamed += piece;
  }
  streamed += detokenizer->Flush();
  Require(streamed == *vocabulary.Decode(ids));
}

}  // namespace
}  // namespace txl

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto& all =
      *new std::vector<txl::NamedVocabulary>(txl::EveryVocabulary());
  if (size < 2) return 0;
  const txl::NamedVocabulary& named = all[data[0] % all.size()];
  const std::string rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (data[1] % 4 == 0) {
    txl::Decode(*named.vocabulary, rest);
    txl::Restore(*named.vocabulary, rest);
  } else {
    // A fuzzer seldom writes valid characters by itself.
    txl::Encode(named, data[1] % 4 == 1 ? rest : txl::ReplaceInvalidUtf8(rest));
  }
  return 0;
}
