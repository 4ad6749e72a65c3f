#include "model/convert/container/file_kind.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "model/base/status_macros.h"
#include "model/convert/container/sorted_table.h"
#include "model/convert/container/torch_checkpoint.h"

namespace txl {
namespace {

using absl::string_view;

constexpr uint64_t kStartBytes = 512;
constexpr uint64_t kTarMagicAt = 257;
constexpr uint64_t kDirectoryBytes = 1 << 20;

struct Signature {
  string_view start;
  string_view what;
};
constexpr Signature kSignatures[] = {
    {"\x1f\x8b", "is a gzip file: unpack it first"},
    {"BZh", "is a bzip2 file: unpack it first"},
    {"\xfd"
     "7zXZ",
     "is an xz file: unpack it first"},
    {"\x28\xb5\x2f\xfd", "is a zstd file: unpack it first"},
    {"7z\xbc\xaf", "is a 7z archive: unpack it first"},
    {"\x89HDF\r\n", "is an HDF5 file, which holds no Transformer-XL known"},
    {"GGUF", "is a GGUF file, which holds no Transformer-XL known"},
    {"\x93NUMPY", "is a single npy array; give the folder with its info.json"},
    {"PK\x03\x04", "is a zip archive, but no torch file"},
    {"PK\x05\x06", "is an empty zip archive"},
    {"version https://git-lfs.github.com/",
     "is a pointer of Git LFS, not the file itself: fetch it with git lfs"},
    {"model_checkpoint_path:",
     "only names a TensorFlow checkpoint; give its folder"},
};

std::string Start(const ByteSource& file) {
  std::string start(std::min(file.size(), kStartBytes), '\0');
  const absl::Status read = file.Read(
      0,
      absl::MakeSpan(reinterpret_cast<uint8_t*>(start.data()), start.size()));
  return read.ok() ? start : "";
}

bool IsText(string_view start) {
  return std::none_of(start.begin(), start.end(), [](char c) {
    return absl::ascii_iscntrl(c) && !absl::ascii_isspace(c);
  });
}

bool LooksLikeSafetensors(const ByteSource& file) {
  const std::string start = Start(file);
  if (start.size() < sizeof(uint64_t) + 1) return false;
  // A length that is text would be one of exabytes.
  return start[sizeof(uint64_t)] == '{' &&
         !IsText(string_view(start).substr(0, sizeof(uint64_t)));
}

// By names in the directory at the archive's end; torch.save writes no such
// records.
bool LooksLikeTorchScript(const ByteSource& file) {
  uint8_t start[4] = {};
  if (file.size() < sizeof(start) ||
      !file.Read(0, absl::MakeSpan(start)).ok() ||
      std::memcmp(start, "PK\x03\x04", sizeof(start)) != 0) {
    return false;
  }
  std::string end(std::min(file.size(), kDirectoryBytes), '\0');
  return file.Read(file.size() - end.size(),
                   absl::MakeSpan(reinterpret_cast<uint8_t*>(end.data()),
                                  end.size()))
             .ok() &&
         absl::StrContains(end, "/constants.pkl") &&
         absl::StrContains(end, "/code/");
}

}  // namespace

absl::StatusOr<FileKind> KindOf(const ByteSource& file) {
  uint8_t byte = 0;
  if (file.size() > 0) {
    TXL_RETURN_IF_ERROR(file.Read(0, absl::MakeSpan(&byte, 1)));
  }
  if (LooksLikeTorchScript(file)) return FileKind::kForeign;
  if (LooksLikeTorchFile(file)) return FileKind::kTorch;
  if (LooksLikeSortedTable(file)) return FileKind::kBundleIndex;
  if (LooksLikeSafetensors(file)) return FileKind::kSafetensors;
  return FileKind::kForeign;
}

string_view Foreign(const ByteSource& file) {
  if (file.size() == 0) return "is empty";
  if (LooksLikeTorchScript(file)) {
    return "is a TorchScript archive, which holds code; save the state_dict()";
  }
  const std::string start = Start(file);
  for (const Signature& known : kSignatures) {
    if (string_view(start).substr(0, known.start.size()) == known.start) {
      return known.what;
    }
  }
  if (start.size() >= kTarMagicAt + 5 &&
      start.compare(kTarMagicAt, 5, "ustar") == 0) {
    return "is a tar archive: unpack it first";
  }
  // Protocols 2 to 5 name themselves; older pickles are text.
  if (start.size() > 1 && start[0] == '\x80' && start[1] >= 2 &&
      start[1] <= 5) {
    return "is a plain pickle, no torch file";
  }
  if (start[0] == '<' && IsText(start)) {
    return "is a web page, perhaps of a download that failed";
  }
  if (IsText(start)) return "is text, no checkpoint";
  return "is not a checkpoint that is known";
}

}  // namespace txl
