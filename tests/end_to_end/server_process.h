#pragma once

// txl-server as a subprocess on a free port of loopback.

#include <memory>
#include <string>
#include <vector>

#include "client/client.h"
#include "tests/client/process.h"
#include "txl/v1/model_service.pb.h"

namespace txl::testing {

// The folder that TXL_TEST_DATA names.
std::string TestData();
// Of a golden case, as a model directory.
std::string GoldenModel(const std::string& name);
// A file for --config of a server that parks no stream.
std::string NeverParked();
// The model of the repository.
std::string ShippedModel();

class ServerProcess {
 public:
  // Starts it and waits for its "listening on" line; fails the test when that
  // does not come.
  // `wrapper`: a program and its first arguments that runs the server with the
  // rest of them and becomes it.
  explicit ServerProcess(const std::string& model_directory,
                         const std::vector<std::string>& flags = {},
                         const std::vector<std::string>& wrapper = {});
  // SIGTERM, then waits.
  ~ServerProcess();

  const std::string& address() const { return address_; }
  // With --metrics-listen: where the metrics are, HOST:PORT. Call once.
  std::string ReadMetricsAddress();
  // A client with a connection of its own.
  std::unique_ptr<Client> NewClient() const;
  Client& client() { return *client_; }
  // One snapshot of the counters, whose conservation laws are checked.
  v1::GetServerStatusResponse Status();

  // Its log so far.
  std::string Log() const { return process_.Err(); }

  // Of the process, from /proc.
  int64_t ResidentBytes() const;
  int64_t OwnBytes() const;  // as tests/client/process_memory.h counts them
  std::vector<std::string> OpenFiles() const;  // what each of them is

  void Signal(int signal) { process_.Signal(signal); }
  void Terminate();       // SIGTERM
  int Wait();             // exit code
  bool HasEnded() const;  // whether Wait would return at once

 private:
  Process process_;
  std::string address_;
  std::unique_ptr<Client> client_;
  bool ended_ = false;
};

// Fails the test where started = finished + active and the like do not hold.
void ExpectConserved(const v1::GetServerStatusResponse& status);

}  // namespace txl::testing
