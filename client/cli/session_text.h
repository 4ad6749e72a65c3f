#pragma once

// A session as a line of a table.

#include <string>

#include "txl/v1/session_service.pb.h"

namespace txl::cli {

inline constexpr char kSessionHeader[] =
    "SESSION                  STATE   POSITION MEMORY_BYTES  LAST_USE"
    "             EXPIRES\n";

// Under the header, with its line end. Times are local.
std::string FormatSession(const v1::Session& session);

}  // namespace txl::cli
