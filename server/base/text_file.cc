#include "server/base/text_file.h"

#include <fstream>
#include <sstream>

namespace txl {

std::string ReadTextFile(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

}  // namespace txl
