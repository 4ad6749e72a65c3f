#include "server/store/image_folder.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/base/digest.h"

namespace txl {
namespace {

constexpr size_t kHeadDigits = 32;

// -1: no image has such a name.
int64_t PositionOf(absl::string_view name) {
  if (!absl::ConsumeSuffix(&name, kImageSuffix)) return -1;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(name, absl::MaxSplits('-', 1));
  const bool is_head = parts.second.size() == kHeadDigits &&
                       std::all_of(parts.second.begin(), parts.second.end(),
                                   absl::ascii_isxdigit);
  int64_t position = 0;
  return is_head && absl::SimpleAtoi(parts.first, &position) ? position : -1;
}

}  // namespace

std::string ImageNameOf(int64_t position, absl::string_view head) {
  const std::string digest = absl::BytesToHexString(Sha256Of(head));
  return absl::StrCat(position, "-", digest.substr(0, kHeadDigits),
                      kImageSuffix);
}

std::vector<ImageEntry> ListImages(const std::string& folder) {
  std::vector<ImageEntry> images;
  for (const auto& entry : EntriesOf(folder)) {
    const int64_t position = PositionOf(entry.path().filename().string());
    struct stat found;
    if (position < 0 || ::lstat(entry.path().c_str(), &found) != 0) continue;
    images.push_back(
        {entry.path().string(), position, found.st_size, UseOf(found)});
  }
  std::sort(images.begin(), images.end(),
            [](const ImageEntry& a, const ImageEntry& b) {
              return std::pair(a.position, a.path) >
                     std::pair(b.position, b.path);
            });
  return images;
}

std::vector<std::filesystem::directory_entry> EntriesOf(
    const std::string& folder) {
  std::vector<std::filesystem::directory_entry> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end;
       !error && at != end; at.increment(error)) {
    entries.push_back(*at);
  }
  return entries;
}

int64_t UseOf(const struct stat& file) {
  // A file may have any time; 64 bits of nanoseconds end in the year 2262.
  const int64_t seconds =
      std::clamp<int64_t>(file.st_mtim.tv_sec, 0, int64_t{9'000'000'000});
  return seconds * 1'000'000'000 + file.st_mtim.tv_nsec;
}

void SetUse(int fd, int64_t use) {
  timespec times[2];
  times[0] = {.tv_sec = 0, .tv_nsec = UTIME_OMIT};
  times[1] = {.tv_sec = use / 1'000'000'000, .tv_nsec = use % 1'000'000'000};
  // In vain only on a file system that keeps no times; the order is then that
  // of the writes.
  (void)::futimens(fd, times);
}

}  // namespace txl
