#pragma once

// A TCP proxy before a server, which loses connections when it is told to.

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace txl::testing {

// Thread-safe.
class CuttingProxy {
 public:
  // `server`: "127.0.0.1:PORT".
  explicit CuttingProxy(const std::string& server);
  ~CuttingProxy();

  const std::string& address() const { return address_; }

  // Resets every connection that there is, soon; new ones are taken as ever.
  void Cut();
  int64_t cuts() const { return cuts_; }

 private:
  struct Connection {
    int client = -1;
    int server = -1;
  };

  void Run();
  void Wake();
  void Accept();
  void Reset(const Connection& connection);
  // Bytes of one side to the other; false: the connection has ended.
  static bool Forward(int from, int to);

  const std::string server_;
  int listener_ = -1;
  int wake_ = -1;
  std::string address_;
  std::vector<Connection> open_;  // of Run's thread
  std::atomic<bool> cut_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> cuts_{0};
  std::thread thread_;  // last: Run uses the members above
};

}  // namespace txl::testing
