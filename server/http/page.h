#pragma once

// The page at / and its files below /ui/, as they stand in the program.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/http/http_message.h"

namespace txl {

bool IsPagePath(const std::string& path);

// False: the path is not one of the page's.
bool AnswerPagePath(const std::shared_ptr<Exchange>& exchange);

// Files that are part of the program: the page's.

struct EmbeddedFile {
  std::string name;        // "main.js"
  absl::string_view gzip;  // its bytes, packed
};

const std::vector<EmbeddedFile>& PageFiles();

}  // namespace txl
