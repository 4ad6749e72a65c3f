#pragma once

// A TCP proxy before a server, which loses connections when it is told to.

#include <atomic>
#include <cstdint>
#include <random>
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
  // Resets every connection from now on after a random number of the server's
  // bytes, up to `longest`; 0: none.
  void CutAtRandom(int64_t longest) { longest_ = longest; }
  int64_t cuts() const { return cuts_; }

 private:
  struct Connection {
    int client = -1;
    int server = -1;
    int64_t bytes_left = 0;  // of the server's
  };

  void Run();
  void Wake();
  void Drain();
  void Accept();
  void Reset(const Connection& connection);
  // Bytes of one side to the other, `most` at most; how many, 0 at the
  // connection's end.
  static int64_t Forward(int from, int to, int64_t most);

  const std::string server_;
  int listener_ = -1;
  int wake_ = -1;
  std::string address_;
  std::vector<Connection> open_;  // of Run's thread
  std::minstd_rand random_{11};   // of Run's thread
  std::atomic<int64_t> longest_{0};
  std::atomic<bool> cut_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> cuts_{0};
  std::thread thread_;  // last: Run uses the members above
};

}  // namespace txl::testing
