// Any bytes as an exported session. The first byte of the input says whether
// the server has a key (1), whether the rest is the file itself (2) or what
// stands in its sections, and whether that has a state (4) and a MAC (8). The
// second is how many bytes come at a time. In sections the third byte is the
// number of ids, each of two bytes, then comes a length byte and the TURN, and
// the rest is the STATE: a fuzzer does not find sums by itself.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "model/text/byte_vocabulary.h"
#include "server/base/error.h"
#include "server/session/session_export.h"
#include "server/session/session_import.h"

namespace txl {
namespace {

constexpr int64_t kVocabulary = 300;
constexpr char kKey[] = "key";

void Require(bool holds) {
  if (!holds) std::abort();
}

// Cuts so many bytes off, or what there is.
absl::string_view Cut(absl::string_view& rest, size_t size) {
  const absl::string_view part = rest.substr(0, size);
  rest.remove_prefix(part.size());
  return part;
}

uint8_t CutByte(absl::string_view& rest) {
  const absl::string_view byte = Cut(rest, 1);
  return byte.empty() ? 0 : static_cast<uint8_t>(byte[0]);
}

std::string FileOfSections(absl::string_view rest, bool has_state,
                           bool has_mac) {
  const absl::string_view ids = Cut(rest, size_t{CutByte(rest)} * 2);
  const absl::string_view turn = Cut(rest, CutByte(rest));
  ExportHead head;
  head.fingerprint = "model";
  head.vocabulary_size = kVocabulary;
  head.token_count = static_cast<int64_t>(ids.size() / 2);
  head.ttl = absl::Hours(1);
  head.has_state = has_state;
  head.has_mac = has_mac;
  ExportFramer framer(has_mac ? kKey : "");
  std::string file;
  framer.Begin(file);
  framer.AddSection(ExportSection::kHead, EncodeExportHead(head), file);
  framer.AddSection(ExportSection::kIds, ids, file);
  framer.AddSection(ExportSection::kTurn, turn, file);
  if (has_state) framer.AddSection(ExportSection::kState, rest, file);
  framer.End(file);
  return file;
}

absl::StatusOr<ImportedSession> Import(const ImportOptions& options,
                                       absl::string_view file,
                                       size_t piece_bytes) {
  SessionImport import(options);
  while (!file.empty()) {
    const absl::Status status = import.Add(Cut(file, piece_bytes));
    if (!status.ok()) return status;
  }
  return import.Finish();
}

// What was taken in can be exported and taken in again.
void CheckSession(const ImportedSession& session,
                  const ImportOptions& options) {
  Require(session.token_ids.size() <= options.max_tokens);
  const TokenSlice ids = session.token_ids.Slice(0, session.token_ids.size());
  for (const int32_t id : ids.Copy()) Require(id >= 0 && id < kVocabulary);
  Require(!session.state || !options.key.empty());
  SessionExport again(
      {options.fingerprint, kVocabulary, options.key}, session.head, ids,
      session.state ? std::make_shared<StateImage>(*session.state) : nullptr);
  SessionImport import(options);
  for (std::string piece = again.Next(); !piece.empty(); piece = again.Next()) {
    Require(import.Add(piece).ok());
  }
  const auto copy = import.Finish();
  Require(copy.ok());
  Require(copy->token_ids.Slice(0, copy->token_ids.size()).Copy() ==
          ids.Copy());
  Require(copy->head.detokenizer == session.head.detokenizer);
  Require(copy->head.earlier_requests == session.head.earlier_requests);
  Require(copy->state.has_value() == session.state.has_value());
  Require(!copy->state || copy->state->data == session.state->data);
}

}  // namespace
}  // namespace txl

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto& vocabulary = *new txl::ByteVocabulary();
  absl::string_view rest(reinterpret_cast<const char*>(data), size);
  const uint8_t how = txl::CutByte(rest);
  const size_t piece_bytes = std::max<size_t>(txl::CutByte(rest), 1);
  txl::ImportOptions options;
  options.fingerprint = "model";
  options.vocabulary_size = txl::kVocabulary;
  options.vocabulary = &vocabulary;
  if (how & 1) options.key = txl::kKey;
  options.max_bytes = 1 << 20;
  options.max_tokens = 200;
  const std::string file =
      how & 2 ? std::string(rest)
              : txl::FileOfSections(rest, (how & 4) != 0, (how & 8) != 0);
  const auto session = txl::Import(options, file, piece_bytes);
  if (session.ok()) {
    txl::CheckSession(*session, options);
    return 0;
  }
  const std::string reason = txl::GetErrorDetails(session.status()).reason;
  txl::Require(reason == "FIELD_INVALID" || reason == "OVER_LIMIT" ||
               reason == "MODEL_MISMATCH");
  return 0;
}
