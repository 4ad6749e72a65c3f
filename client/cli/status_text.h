#pragma once

// What `txl status` says about a server. Pure.

#include <string>

#include "client/cli/status_rates.h"
#include "txl/v1/model_service.pb.h"

namespace txl::cli {

// "starting", "ready", "draining", "unknown".
std::string StateName(v1::ServerState state);

// Lines "name         value".
std::string FormatModel(const v1::GetModelResponse& model);
std::string FormatStatus(const v1::GetServerStatusResponse& status);

// What --watch shows: the server now and of late. One line each period
// for logs; lines as FormatStatus has them for a terminal.
std::string FormatWatchLine(const v1::GetServerStatusResponse& status,
                            const StatusRates& rates);
std::string FormatWatchScreen(const v1::GetServerStatusResponse& status,
                              const StatusRates& rates);

}  // namespace txl::cli
