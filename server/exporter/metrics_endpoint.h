#pragma once

// GET /metrics over HTTP, in Prometheus's text format.

#include <prometheus/exposer.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/exporter/status_collector.h"

namespace txl {

// What is wrong with an address to listen on, "" for HOST:PORT (port 0: any
// free one). An IPv6 host stands in brackets.
std::string CheckMetricsAddress(absl::string_view address);

class MetricsEndpoint {
 public:
  // `source` is called from the endpoint's threads until it is destroyed.
  // Errors: InvalidArgument for no HOST:PORT, Unavailable when the address
  // cannot be listened on.
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Start(
      const std::string& address, ExporterFacts facts, StatusSource source);
  // Stops listening. Returns when no scrape runs: at once, or after
  // a connection that sends nothing has timed out (kReadTimeout).
  ~MetricsEndpoint();
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;

  // HOST:PORT with the real port.
  const std::string& address() const { return address_; }

 private:
  MetricsEndpoint(std::string host, std::shared_ptr<StatusCollector> collector,
                  std::unique_ptr<prometheus::Exposer> exposer);

  const std::string host_;
  const int port_;
  const std::string address_;
  const std::shared_ptr<StatusCollector> collector_;
  std::unique_ptr<prometheus::Exposer> exposer_;
};

// A connection that has not sent its request after this time is closed.
inline constexpr absl::Duration kReadTimeout = absl::Seconds(2);

}  // namespace txl
