#pragma once

// A client of the HTTP front that says exactly what a test wants: any bytes
// over one connection, and whole requests and answers with Boost.Beast's own
// client. Nothing waits for longer than the client's limit.

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/system/error_code.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace txl {

// Fields in their order, as sent.
using HttpFields = std::vector<std::pair<std::string, std::string>>;

// A server-sent event.
struct SseEvent {
  std::string id;  // "" without an id line
  std::string data;
  bool operator==(const SseEvent&) const = default;
};

struct HttpAnswer {
  int status = 0;                              // 0: there was none
  std::map<std::string, std::string> headers;  // lower-case names
  std::string body;
  bool whole = false;  // the body came to its end

  // The value of a header, "absent" where there is none.
  std::string header(const std::string& name) const;
  // Fails the test where the body is no JSON.
  nlohmann::json json() const;
  // Of an error: "409 SESSION_BUSY", "400 FIELD_INVALID top_p".
  std::string outcome() const;
  // The events of a stream; fails the test where something else stands there.
  std::vector<SseEvent> events() const;
  // Those with JSON, without "[DONE]", which has to be the last one.
  std::vector<nlohmann::json> chunks() const;
};

// A stream of Boost.Beast's, too.
class RawClient {
 public:
  // `receive_buffer`: of the kernel's, in bytes; 0: its own choice.
  explicit RawClient(const std::string& address,
                     absl::Duration limit = absl::Seconds(10),
                     int receive_buffer = 0);
  ~RawClient() { Close(); }
  RawClient(RawClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), buffer_(std::move(other.buffer_)) {}

  // False: the server takes no more.
  bool Send(const std::string& bytes);
  // What has come; "" at the end, or where nothing comes in time.
  std::string Receive();
  // Reads until `text` has come; what came so far where it does not.
  std::string ReceiveUntil(const std::string& text);
  // Until the server closes. False in `ended`: it did not in time.
  std::string ReceiveAll(bool* ended = nullptr);
  // One answer, the next one stays.
  HttpAnswer ReadAnswer(bool of_head_request = false);
  void Close();

  // SyncReadStream.
  template <typename Buffers>
  size_t read_some(const Buffers& buffers, boost::system::error_code& error) {
    const auto to = *boost::asio::buffer_sequence_begin(buffers);
    return ReadSome(to.data(), to.size(), error);
  }
  template <typename Buffers>
  size_t read_some(const Buffers& buffers) {
    boost::system::error_code error;
    const size_t read = read_some(buffers, error);
    if (error) throw boost::system::system_error(error);
    return read;
  }

 private:
  size_t ReadSome(void* to, size_t size, boost::system::error_code& error);

  int fd_;
  boost::beast::flat_buffer buffer_;
};

// The bytes of a request. A body adds Content-Type and Content-Length, Host is
// 127.0.0.1 where `fields` say nothing else.
std::string RequestBytes(const std::string& method, const std::string& target,
                         const std::string& body = "",
                         const HttpFields& fields = {});

}  // namespace txl
