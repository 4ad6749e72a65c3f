#include "server/http/metrics_endpoint.h"

#include <utility>

#include "server/http/guard.h"
#include "server/http/http_error.h"

namespace txl {
namespace {

// A scrape that runs when the endpoint ends.
constexpr absl::Duration kLastScrape = absl::Milliseconds(500);

constexpr PathRule kMetricsRule = {false, kWatchers, "/metrics"};
// Open, as the API's is: a kubelet has no key.
constexpr PathRule kHealthRule = {true, {}, "/health"};

const PathRule& RuleOfPath(const HttpRequest& request) {
  return request.path == "/health" ? kHealthRule : kMetricsRule;
}

HttpOptions MetricsOptions(const std::string& address) {
  HttpOptions options;
  options.listen = address;
  // Who scrapes names the server as he likes, and a page that reads metrics has
  // learnt nothing of anybody.
  options.any_host = true;
  options.connections = 64;
  options.header_timeout = absl::Seconds(2);
  return options;
}

HttpReply HealthOf(const ServerStatus& status) {
  if (status.phase != ServerPhase::kReady) {
    return PlainError(503, "NOT_READY", "the server takes no new work");
  }
  HttpReply reply;
  reply.body = R"({"status":"ok"})";
  return reply;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Start(
    const std::string& address, ExporterFacts facts, StatusSource source,
    CallDesk* desk) {
  StatusSource health = source;
  const auto collector = std::make_shared<const StatusCollector>(
      std::move(facts), std::move(source));
  HttpHandlers handlers;
  handlers.handle = [collector, health = std::move(health)](
                        const std::shared_ptr<Exchange>& exchange) {
    const HttpRequest& request = exchange->request();
    if (request.path != "/metrics" && request.path != "/health") {
      return exchange->Reply(
          PlainError(404, "NOT_FOUND", "there are only /metrics and /health"));
    }
    if (request.method != "GET" && request.method != "HEAD") {
      return exchange->Reply(
          PlainError(405, "METHOD_NOT_ALLOWED", "takes GET"));
    }
    if (request.path == "/health") return exchange->Reply(HealthOf(health()));
    HttpReply reply;
    reply.content_type = kMetricsContentType;
    reply.body = MetricsText(*collector);
    exchange->Reply(std::move(reply));
  };
  handlers.let_in = [desk](HttpRequest* head,
                           const std::vector<std::string>& authorization) {
    if (desk == nullptr) return absl::OkStatus();
    return LetInPath(*desk, RuleOfPath(*head), authorization, head);
  };
  if (desk != nullptr) {
    handlers.refused = [desk](const HttpRequest& request,
                              const absl::Status& status) {
      RecordRefusal(*desk, RuleOfPath(request), request, status);
    };
  }
  handlers.hold_body = [](int64_t) { return ByteHold(); };
  absl::StatusOr<std::unique_ptr<HttpServer>> server =
      HttpServer::Start(MetricsOptions(address), std::move(handlers));
  if (!server.ok()) return server.status();
  return std::unique_ptr<MetricsEndpoint>(
      new MetricsEndpoint(*std::move(server)));
}

MetricsEndpoint::~MetricsEndpoint() { server_->Shutdown(kLastScrape); }

}  // namespace txl
