#pragma once

// The folder with the state images of one session. Its files are written aside
// and moved in under a name that says what they hold, so that whoever writes
// there, no file is ever changed or written twice in different ways:
//
//   POSITION-HEAD.txlm   position of the state; the first 128 bits of the
//                        SHA-256 of the file's head (server/store/image_file.h)

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace txl {

inline constexpr absl::string_view kImageSuffix = ".txlm";

// Of an image with this head at `position` >= 0.
std::string ImageNameOf(int64_t position, absl::string_view head);

struct ImageEntry {
  std::string path;
  int64_t position = 0;
  int64_t bytes = 0;
  int64_t use = 0;  // of its time of change, Unix nanoseconds
};

// The images there, the largest position first; files of other names are none.
// Nothing where the folder is missing or cannot be read.
std::vector<ImageEntry> ListImages(const std::string& folder);

// All entries of a folder; those that can be read.
std::vector<std::filesystem::directory_entry> EntriesOf(
    const std::string& folder);

// A file's time of change is that of its last use, also for other processes.
// 0: the file is from before 1970.
int64_t UseOf(const struct stat& file);
void SetUse(int fd, int64_t use);

}  // namespace txl
