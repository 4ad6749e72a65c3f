#include "server/store/image_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/base/byte_fields.h"
#include "server/base/digest.h"
#include "server/session/session_export.h"
#include "server/store/file_calls.h"

namespace txl {
namespace {

constexpr absl::string_view kMagic = "TXLM";
constexpr uint32_t kVersion = 1;
constexpr int64_t kPreambleBytes = 20;
// A head has about 300 bytes.
constexpr int64_t kMaxHeadBytes = 64 * 1024;
constexpr int64_t kBlockBytes = 1 << 20;

absl::string_view View(const LargeVector<uint8_t>& data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

absl::Status Damaged(const std::string& path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": ", what));
}

// Reads the file from front to end and sums up what it reads.
class SummingReader {
 public:
  SummingReader(int fd, const std::string& path) : fd_(fd), path_(path) {}

  absl::Status Read(void* out, size_t size) {
    TXL_RETURN_IF_ERROR(ReadPlain(out, size));
    sum_.Add({static_cast<const char*>(out), size});
    return absl::OkStatus();
  }

  absl::Status Skip(int64_t size) {
    std::string block;
    for (; size > 0; size -= static_cast<int64_t>(block.size())) {
      block.resize(static_cast<size_t>(std::min(size, kBlockBytes)));
      TXL_RETURN_IF_ERROR(Read(block.data(), block.size()));
    }
    return absl::OkStatus();
  }

  // The last bytes of the file, which say what the others sum up to.
  absl::Status CheckSum() {
    std::string stored(kDigestBytes, '\0');
    TXL_RETURN_IF_ERROR(ReadPlain(stored.data(), stored.size()));
    if (EqualDigests(stored, sum_.Finish())) return absl::OkStatus();
    return Damaged(path_, "the digest does not match");
  }

 private:
  absl::Status ReadPlain(void* out, size_t size) {
    const absl::Status status = ReadFully(fd_, path_, out, size);
    return absl::IsOutOfRange(status) ? absl::DataLossError(status.message())
                                      : status;
  }

  int fd_;
  const std::string& path_;
  RunningDigest sum_ = RunningDigest::Sha256();
};

absl::StatusOr<int64_t> FileBytes(int fd, const std::string& path) {
  struct stat found;
  if (::fstat(fd, &found) != 0) return FileError(path, "examine", errno);
  if (!S_ISREG(found.st_mode)) return Damaged(path, "is not a regular file");
  constexpr int64_t kLeast = kPreambleBytes + int64_t{kDigestBytes};
  if (found.st_size < kLeast) return Damaged(path, "is too short");
  return int64_t{found.st_size};
}

// Sizes that the preamble gives, checked against the file's own.
struct Sizes {
  int64_t head = 0;
  int64_t data = 0;
};

absl::StatusOr<Sizes> ReadPreamble(SummingReader& file, const std::string& path,
                                   int64_t file_bytes) {
  std::string preamble(kPreambleBytes, '\0');
  TXL_RETURN_IF_ERROR(file.Read(preamble.data(), preamble.size()));
  if (preamble.compare(0, kMagic.size(), kMagic.data(), kMagic.size()) != 0) {
    return Damaged(path, "is not a state image");
  }
  ByteReader in(absl::string_view(preamble).substr(kMagic.size()));
  const int64_t rest = file_bytes - kPreambleBytes - int64_t{kDigestBytes};
  if (const uint32_t version = in.U32(); version != kVersion) {
    TXL_RETURN_IF_ERROR(file.Skip(rest));
    TXL_RETURN_IF_ERROR(file.CheckSum());
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": is of version ", version));
  }
  const int64_t head = in.U32();
  const uint64_t data = in.U64();
  if (head > kMaxHeadBytes || head > rest ||
      data != static_cast<uint64_t>(rest - head)) {
    return Damaged(path, "has sizes that contradict each other");
  }
  return Sizes{head, static_cast<int64_t>(data)};
}

}  // namespace

absl::StatusOr<std::string> EncodeImageHead(absl::string_view session_id,
                                            absl::string_view ids_digest,
                                            const StateImage& image) {
  if (ids_digest.size() != kDigestBytes) {
    return absl::InvalidArgumentError("a digest of ids has 32 bytes");
  }
  ByteWriter head;
  head.Text(session_id);
  head.Text(ids_digest);
  WriteStateHead(image, head);
  if (head.bytes().size() > size_t{kMaxHeadBytes}) {
    return absl::InvalidArgumentError(
        absl::StrCat("the head of a state image has ", head.bytes().size(),
                     " bytes, more than ", kMaxHeadBytes));
  }
  ByteWriter preamble;
  preamble.U32(kVersion);
  preamble.U32(static_cast<uint32_t>(head.bytes().size()));
  preamble.U64(image.data.size());
  return absl::StrCat(kMagic, preamble.bytes(), head.bytes());
}

int64_t ImageFileBytes(const std::string& head, const StateImage& image) {
  return static_cast<int64_t>(head.size() + image.data.size() + kDigestBytes);
}

absl::Status WriteImageFile(int fd, const std::string& path,
                            const std::string& head, const StateImage& image) {
  RunningDigest sum = RunningDigest::Sha256();
  for (const absl::string_view part :
       {absl::string_view(head), View(image.data)}) {
    sum.Add(part);
    TXL_RETURN_IF_ERROR(WriteFully(fd, path, part));
  }
  return WriteFully(fd, path, sum.Finish());
}

absl::StatusOr<StoredImage> ReadImageFile(int fd, const std::string& path,
                                          absl::string_view session_id,
                                          int64_t most_bytes) {
  TXL_ASSIGN_OR_RETURN(const int64_t file_bytes, FileBytes(fd, path));
  SummingReader file(fd, path);
  TXL_ASSIGN_OR_RETURN(const Sizes sizes, ReadPreamble(file, path, file_bytes));
  if (sizes.data > most_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        path, ": has ", sizes.data, " bytes of data, more than ", most_bytes));
  }
  std::string head(static_cast<size_t>(sizes.head), '\0');
  TXL_RETURN_IF_ERROR(file.Read(head.data(), head.size()));
  ByteReader in(head);
  StoredImage stored;
  stored.session_id = in.Text();
  stored.ids_digest = in.Text();
  ReadStateHead(in, stored.image);
  if (!in.done() || stored.session_id != session_id ||
      stored.ids_digest.size() != kDigestBytes) {
    return Damaged(path, "has a wrong head");
  }
  stored.image.data.resize(static_cast<size_t>(sizes.data));
  TXL_RETURN_IF_ERROR(
      file.Read(stored.image.data.data(), stored.image.data.size()));
  TXL_RETURN_IF_ERROR(file.CheckSum());
  return stored;
}

}  // namespace txl
