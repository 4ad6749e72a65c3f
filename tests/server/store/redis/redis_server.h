#pragma once

// redis-server as a subprocess on a free port of loopback, with its data in a
// folder that is gone with the test.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/client/process.h"

namespace txl::testing {

class RedisServer {
 public:
  // Its log is on stable storage before it answers, unless `flags` say else.
  explicit RedisServer(std::vector<std::string> flags = {});
  ~RedisServer();

  int port() const { return port_; }
  std::string url() const;  // redis://127.0.0.1:PORT

  void Signal(int signal) { process_->Signal(signal); }
  // SIGKILL; what is on its disk stays.
  void Kill();
  // Again, on the same port and data.
  void Start();

 private:
  bool TryStart();

  const std::vector<std::string> flags_;
  std::string folder_;
  int port_ = 0;
  std::unique_ptr<Process> process_;
};

// A fixture with a Redis that its tests have one after the other; Base: one of
// GoogleTest's.
template <typename Base = ::testing::Test>
class WithRedis : public Base {
 protected:
  static void SetUpTestSuite() { redis_ = new RedisServer(); }
  static void TearDownTestSuite() {
    delete redis_;
    redis_ = nullptr;
  }

  static inline RedisServer* redis_ = nullptr;
};

}  // namespace txl::testing
