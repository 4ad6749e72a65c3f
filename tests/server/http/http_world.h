#pragma once

// A whole server without weights (RpcWorld) with the HTTP front beside gRPC:
// the same sessions, the same scheduler, the same fake device.

#include <memory>
#include <string>

#include "server/http/endpoints.h"
#include "tests/server/http/raw_client.h"
#include "tests/server/rpc/rpc_world.h"

namespace txl {

struct HttpWorldOptions {
  RpcWorldOptions rpc;
  HttpOptions http;  // `listen` is the world's
};

class HttpWorld {
 public:
  explicit HttpWorld(HttpWorldOptions options = {});
  ~HttpWorld();

  const std::string& address() const { return front->address(); }
  // A request over a connection of its own.
  HttpAnswer Send(const std::string& method, const std::string& target,
                  const std::string& body = "", const HttpFields& fields = {});
  HttpAnswer Get(const std::string& target) { return Send("GET", target); }
  HttpAnswer Post(const std::string& target, const nlohmann::json& body,
                  const HttpFields& fields = {}) {
    return Send("POST", target, body.dump(), fields);
  }
  HttpAnswer Complete(const nlohmann::json& body,
                      const HttpFields& fields = {}) {
    return Post("/v1/completions", body, fields);
  }
  // The first choice of a completion.
  nlohmann::json Choice(const nlohmann::json& body) {
    return Complete(body).json()["choices"][0];
  }
  // A connection that has asked for this, and has read nothing.
  RawClient Ask(const std::string& target, const nlohmann::json& body);

  // No turn waits or runs, no call is open. False after ten seconds.
  bool ComesToRest();

  RpcWorld rpc;
  std::unique_ptr<HttpFront> front;
};

}  // namespace txl
