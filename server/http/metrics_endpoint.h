#pragma once

// GET /metrics over HTTP, in Prometheus's text format, on an address of its
// own, and GET /health for probes that have no certificate to show: 200 while
// the server takes new work, else 503.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/api/call_desk.h"
#include "server/exporter/status_families.h"
#include "server/http/http_server.h"

namespace txl {

class MetricsEndpoint {
 public:
  // `source` is called from the endpoint's thread until it is destroyed.
  // `desk`: whose keys say who may scrape, and where refusals are recorded; it
  // outlives the endpoint; null: everybody may.
  // Errors: InvalidArgument for no HOST:PORT, Unavailable when the address
  // cannot be listened on.
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Start(
      const std::string& address, ExporterFacts facts, StatusSource source,
      CallDesk* desk = nullptr);
  // Stops listening. Returns when no scrape runs.
  ~MetricsEndpoint();
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;

  // HOST:PORT with the real port.
  const std::string& address() const { return server_->address(); }

 private:
  explicit MetricsEndpoint(std::unique_ptr<HttpServer> server)
      : server_(std::move(server)) {}

  const std::unique_ptr<HttpServer> server_;
};

}  // namespace txl
