#pragma once

// What `txl status` says about a server. Pure.

#include <cstdint>
#include <map>
#include <string>

#include "txl/v1/model_service.pb.h"

namespace txl::cli {

// What a server did between two looks at its counters.

struct StatusRates {
  double seconds = 0;            // between the looks, by the server's clock
  double tokens_per_second = 0;  // handed to streams
  double steps_per_second = 0;
  double rows_per_step = 0;  // mean over the steps; 0 without one
  // Turns that ended, by status; only those above 0.
  std::map<std::string, int64_t> turns_ended;
};

// `before` without an uptime, or of a server that has been restarted since:
// what `after` did since its start. No time between them: no rates.
StatusRates RatesBetween(const v1::GetServerStatusResponse& before,
                         const v1::GetServerStatusResponse& after);

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
