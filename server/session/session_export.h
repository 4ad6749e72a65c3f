#pragma once

// A session as a file that any server of the same model can take in
// (server/session/session_import.h). Pure: no input or output.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "model/memory/state_image.h"
#include "server/base/byte_fields.h"
#include "server/base/digest.h"
#include "server/session/session_journal.h"
#include "server/session/token_sequence.h"

namespace txl {

// The file of an exported session, .txls:
//
//   "TXLS", version (4 bytes)
//   sections, each: kind (4), bytes of the payload (8), then the payload in
//     blocks of 1 MiB, the last one shorter, each followed by its CRC-32C (4):
//   HEAD    ExportHead
//   IDS     the token ids, of as many bytes each as the vocabulary needs
//   TURN    what else the session knows: of a StoredHead the detokenizer, the
//           last turn and the earlier requests
//   STATE   a state image, if there is one: StateHead, then the data
//   DIGEST  SHA-256 of all bytes before this section
//   MAC     HMAC-SHA-256 of all bytes before this section, if there was a key
//
// Numbers are little-endian. A session's id is not in it: any client that knows
// one may use the session.

inline constexpr absl::string_view kExportMagic = "TXLS";
inline constexpr uint32_t kExportVersion = 1;
inline constexpr int64_t kExportBlockBytes = 1 << 20;
// Maximum bytes of HEAD and TURN, which usually have a few hundred.
inline constexpr int64_t kMostExportHeadBytes = 1 << 16;
inline constexpr int64_t kMostExportTurnBytes = 1 << 20;

// In the file's order.
enum class ExportSection : uint32_t {
  kHead = 1,
  kIds = 2,
  kTurn = 3,
  kState = 4,
  kDigest = 5,
  kMac = 6,
};

struct ExportHead {
  std::string fingerprint;  // of the model
  int64_t vocabulary_size = 0;
  int64_t token_count = 0;
  absl::Duration ttl;
  bool has_state = false;
  bool has_mac = false;
};

std::string EncodeExportHead(const ExportHead& head);
// Null: `bytes` are not the fields of a head, or a size or the time is
// negative.
std::optional<ExportHead> DecodeExportHead(absl::string_view bytes);

std::string EncodeExportTurn(const StoredHead& head);
// Sets the three fields. False: `bytes` are not the fields of a turn, or a
// number is negative or a text is not UTF-8.
bool DecodeExportTurn(absl::string_view bytes, StoredHead& head);

// Bytes of an id, 1 to 4. REQUIRES: 0 <= vocabulary_size <= 2^31.
int ExportIdBytes(int64_t vocabulary_size);
std::string EncodeExportIds(absl::Span<const int32_t> ids, int id_bytes);
// Appends the whole ids at the beginning of `bytes`; returns how many bytes
// they are. Ids of 4 bytes may come out negative.
size_t DecodeExportIds(absl::string_view bytes, int id_bytes,
                       std::vector<int32_t>& ids);

// Frames the parts of a file and sums them up. The parts are appended to the
// `out` of each call; they must come in the file's order.
class ExportFramer {
 public:
  // `key`: empty for a file without a MAC.
  explicit ExportFramer(absl::string_view key);

  void Begin(std::string& out);
  void BeginSection(ExportSection section, int64_t bytes, std::string& out);
  // The next block of the section that was begun: kExportBlockBytes or, as its
  // last, the rest.
  void AddBlock(absl::string_view block, std::string& out);
  // The section with all of its blocks.
  void AddSection(ExportSection section, absl::string_view payload,
                  std::string& out);
  // DIGEST and MAC.
  void End(std::string& out);

 private:
  // Into the sums and the file.
  void Put(absl::string_view bytes, std::string& out);

  RunningDigest digest_ = RunningDigest::Sha256();
  std::optional<RunningDigest> mac_;
};

struct ExportOptions {
  std::string fingerprint;      // of the model's weights and config
  int64_t vocabulary_size = 0;  // 0..2^31
  // Key of servers that trust each other's states. Empty: the file has no MAC,
  // and no server imports its state.
  std::string key;
};

// Gives the file in pieces, made when they are asked for: besides the session
// it takes about 2 MiB. Thread-compatible.
class SessionExport {
 public:
  static constexpr int64_t kMostPieceBytes = 1 << 20;

  // The file has neither the session's id nor the times in `head`, except the
  // time-to-live. `state` may be null; its position is at most the number of
  // ids. REQUIRES: the ids are of the vocabulary; the texts of `head` and its
  // earlier requests have less than 1 MiB together.
  SessionExport(const ExportOptions& options, const StoredHead& head,
                TokenSlice ids, std::shared_ptr<const StateImage> state);

  // The next 1..kMostPieceBytes bytes; empty: that was all.
  std::string Next();

 private:
  // What is still to be made, in the file's order.
  enum class Stage { kIds, kTurn, kState, kEnd, kDone };

  void Make();
  void MakeIds();
  void MakeState();

  const TokenSlice ids_;
  const int id_bytes_;
  const std::shared_ptr<const StateImage> state_;
  const std::string turn_;
  std::string state_head_;
  ExportFramer framer_;
  Stage stage_ = Stage::kIds;
  int64_t made_bytes_ = 0;  // of the payload of the section being made
  std::string made_;        // not yet given out
};

// All of a state image but its data, as bytes of files.

void WriteStateHead(const StateImage& image, ByteWriter& out);

// Leaves the image's data as it is. What the fields say is not checked: that is
// CheckStateImage's task.
void ReadStateHead(ByteReader& in, StateImage& image);

}  // namespace txl
