#pragma once

// Files that are part of the program: the page's.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace txl {

struct EmbeddedFile {
  std::string name;        // "main.js"
  absl::string_view gzip;  // its bytes, packed
};

const std::vector<EmbeddedFile>& PageFiles();

}  // namespace txl
