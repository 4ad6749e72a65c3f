#include "server/base/text_file.h"

#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace txl {

std::string ReadTextFile(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

std::string FileVersion(const std::filesystem::path& file) {
  struct stat found = {};
  if (stat(file.c_str(), &found) != 0) return "";
  // The time of the last change of any kind, of its mode too.
  return absl::StrCat(found.st_dev, " ", found.st_ino, " ", found.st_size, " ",
                      found.st_ctim.tv_sec, ".", found.st_ctim.tv_nsec);
}

}  // namespace txl
