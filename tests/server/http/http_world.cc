#include "tests/server/http/http_world.h"

#include <utility>

#include "server/exporter/status_families.h"

namespace txl {

HttpWorld::HttpWorld(HttpWorldOptions options) : rpc(std::move(options.rpc)) {
  options.http.listen = "127.0.0.1:0";
  HttpApi api;
  api.desk = rpc.server->desk();
  const auto collector = std::make_shared<const StatusCollector>(
      ExporterFacts(), [this] { return rpc.server->Status(); });
  api.metrics = [collector] { return MetricsText(*collector); };
  auto started = HttpFront::Start(std::move(options.http), std::move(api));
  EXPECT_TRUE(started.ok()) << started.status();
  front = *std::move(started);
}

HttpWorld::~HttpWorld() {
  rpc.runner.Release();
  if (front == nullptr) return;
  front->Shutdown(absl::Milliseconds(200));
  front.reset();
}

HttpAnswer HttpWorld::Send(const std::string& method, const std::string& target,
                           const std::string& body, const HttpFields& fields) {
  RawClient client(address());
  client.Send(RequestBytes(method, target, body, fields));
  return client.ReadAnswer(method == "HEAD");
}

RawClient HttpWorld::Ask(const std::string& target,
                         const nlohmann::json& body) {
  RawClient client(address());
  client.Send(RequestBytes("POST", target, body.dump()));
  return client;
}

bool HttpWorld::ComesToRest() {
  return Eventually([this] {
    return rpc.scheduler->Idle() && rpc.server->calls().open == 0;
  });
}

}  // namespace txl
