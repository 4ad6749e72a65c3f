#pragma once

// A state image as one file:
//
//   "TXLM", version, bytes of the head (4 each), bytes of the data (8)
//   head: session id, ids digest, StateHead (server/session/session_export.h)
//   data
//   SHA-256 of all bytes before it, as in any later version
//
// Numbers are little-endian.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/memory/state_image.h"

namespace txl {

struct StoredImage {
  std::string session_id;
  std::string ids_digest;  // of the ids that the state depends on; 32 bytes
  StateImage image;
};

// The file's bytes before the data. Errors: InvalidArgument where the digest
// has not 32 bytes or the head is larger than a reader takes.
absl::StatusOr<std::string> EncodeImageHead(absl::string_view session_id,
                                            absl::string_view ids_digest,
                                            const StateImage& image);

// Bytes of the file with this head.
int64_t ImageFileBytes(const std::string& head, const StateImage& image);

// Writes the whole file at the place of `fd`. Errors: as of WriteFully.
absl::Status WriteImageFile(int fd, const std::string& path,
                            const std::string& head, const StateImage& image);

// The file from its beginning; `path` is for messages. Nothing is allocated
// before the file's size has shown that it is needed. Errors:
// - DataLoss: damaged, or no image of this session;
// - FailedPrecondition: sound, but of a version that this server does not know;
// - ResourceExhausted: sound as far as can be seen, but the data has more than
//   most_bytes;
// - Unavailable: cannot be read.
absl::StatusOr<StoredImage> ReadImageFile(int fd, const std::string& path,
                                          absl::string_view session_id,
                                          int64_t most_bytes);

}  // namespace txl
