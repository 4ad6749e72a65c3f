#pragma once

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
// Numbers are little-endian. A session's id is not in it: whoever knows one may
// use the session.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/base/digest.h"
#include "server/session/session_journal.h"

namespace txl {

inline constexpr absl::string_view kExportMagic = "TXLS";
inline constexpr uint32_t kExportVersion = 1;
inline constexpr int64_t kExportBlockBytes = 1 << 20;
// Of a HEAD, and of a TURN: they have some hundred bytes.
inline constexpr int64_t kMostExportHeadBytes = 1 << 16;
inline constexpr int64_t kMostExportTurnBytes = 1 << 20;

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
// Null: these are no fields of a head, or a size or the time is negative.
std::optional<ExportHead> DecodeExportHead(absl::string_view bytes);

std::string EncodeExportTurn(const StoredHead& head);
// Sets the three fields. False: these are no fields of a turn, or a number is
// negative or a text no UTF-8.
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
  void Sum(absl::string_view bytes);

  RunningDigest digest_ = RunningDigest::Sha256();
  std::optional<RunningDigest> mac_;
};

}  // namespace txl
