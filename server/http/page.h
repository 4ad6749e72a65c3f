#pragma once

// The page at / and its files below /ui/, as they stand in the program.

#include <memory>
#include <string>

#include "server/http/exchange.h"

namespace txl {

bool IsPagePath(const std::string& path);

// False: the path is none of the page's.
bool AnswerPagePath(const std::shared_ptr<Exchange>& exchange);

}  // namespace txl
