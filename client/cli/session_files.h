#pragma once

// Sessions to and from files of this machine.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "txl/v1/session_service.pb.h"

namespace txl::cli {

// Writes the export to an OutputFile that only the user may read; "-" is
// standard output. Errors, the server's or the system's, leave a file as it
// was.
absl::Status SaveSession(Client& client,
                         const v1::ExportSessionRequest& request,
                         const CallOptions& options, const std::string& path);

// Makes a session from the file; "-" is standard input. `request` without a
// chunk.
absl::StatusOr<v1::Session> LoadSession(Client& client,
                                        const v1::ImportSessionRequest& request,
                                        const CallOptions& options,
                                        const std::string& path);

// A session as a line of a table.

inline constexpr char kSessionHeader[] =
    "SESSION                  STATE   POSITION MEMORY_BYTES  LAST_USE"
    "             EXPIRES\n";

// Under the header, with its line end. Times are local.
std::string FormatSession(const v1::Session& session);

}  // namespace txl::cli
