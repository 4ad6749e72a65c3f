#pragma once

// What a handler has of a connection while its request runs.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/base/byte_budget.h"
#include "server/http/connection.h"
#include "server/http/exchange.h"

namespace txl {

// Outlives its request in the hands of handlers; then all of it does nothing.
class ConnectionExchange final : public Exchange {
 public:
  // `number`: of the request on its connection. Keeps `hold` until it ends.
  ConnectionExchange(std::shared_ptr<Connection> connection, int64_t number,
                     HttpRequest request, ByteHold hold);
  ~ConnectionExchange() override;

  const HttpRequest& request() const override { return request_; }
  void Reply(HttpReply reply) override;
  void StartStream(HttpReply head) override;
  void Send(std::string bytes, std::function<void(bool)> sent) override;
  void EndStream(std::string last) override;
  void Cut() override;
  void OnLeave(std::function<void()> left) override;
  void Post(std::function<void()> task) override;
  void After(absl::Duration delay, std::function<void()> task) override;

 private:
  std::string Chunk(const std::string& bytes) const;
  bool Runs() const;

  std::shared_ptr<Connection> connection_;
  HttpShared* const shared_;
  const int64_t number_;
  const HttpRequest request_;
  const ByteHold hold_;
};

}  // namespace txl
