#include "tests/server/http/raw_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/beast/http.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace txl {
namespace http = boost::beast::http;
using boost::system::error_code;
using Json = nlohmann::json;

std::string HttpAnswer::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "absent" : found->second;
}

Json HttpAnswer::json() const {
  Json parsed = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(parsed.is_discarded()) << status << " " << body;
  return parsed;
}

std::string HttpAnswer::outcome() const {
  if (status == 200) return "200";
  const Json error = json().value("error", Json::object());
  EXPECT_TRUE(error.contains("message") && error.contains("type") &&
              error.contains("param") && error.contains("code"))
      << body;
  EXPECT_EQ(header("content-type"), "application/json");
  std::string text = absl::StrCat(status, " ", error.value("code", "no code"));
  if (!error["param"].is_null()) {
    absl::StrAppend(&text, " ", error["param"].get<std::string>());
  }
  return text;
}

std::vector<SseEvent> HttpAnswer::events() const {
  std::vector<SseEvent> events;
  EXPECT_EQ(header("content-type"), "text/event-stream");
  absl::string_view rest = body;
  while (!rest.empty()) {
    const size_t end = rest.find("\n\n");
    if (end == absl::string_view::npos) {
      if (whole) ADD_FAILURE() << "an event without an end: " << rest;
      return events;
    }
    SseEvent event;
    for (absl::string_view line : absl::StrSplit(rest.substr(0, end), '\n')) {
      if (absl::ConsumePrefix(&line, "id: ")) {
        event.id = std::string(line);
      } else if (absl::ConsumePrefix(&line, "data: ") && event.data.empty()) {
        event.data = std::string(line);
      } else {
        ADD_FAILURE() << "no line of an event: " << line;
      }
    }
    events.push_back(std::move(event));
    rest.remove_prefix(end + 2);
  }
  return events;
}

std::vector<Json> HttpAnswer::chunks() const {
  std::vector<Json> chunks;
  std::vector<SseEvent> all = events();
  EXPECT_TRUE(!all.empty() && all.back() == (SseEvent{"", "[DONE]"})) << body;
  if (!all.empty()) all.pop_back();
  for (const SseEvent& event : all) {
    chunks.push_back(Json::parse(event.data, nullptr, false));
    EXPECT_FALSE(chunks.back().is_discarded()) << event.data;
  }
  return chunks;
}

RawClient::RawClient(const std::string& address, absl::Duration limit,
                     int receive_buffer)
    : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const timeval wait = absl::ToTimeval(limit);
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
  if (receive_buffer > 0) {
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer,
               sizeof(receive_buffer));
  }
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0) Close();
}

bool RawClient::Send(const std::string& bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t now =
        send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) return false;
    sent += static_cast<size_t>(now);
  }
  return true;
}

size_t RawClient::ReadSome(void* to, size_t size, error_code& error) {
  error = {};
  const ssize_t got = recv(fd_, to, size, 0);
  if (got > 0) return static_cast<size_t>(got);
  error = got == 0 ? error_code(boost::asio::error::eof)
                   : error_code(errno, boost::system::system_category());
  return 0;
}

std::string RawClient::Receive() {
  std::string bytes(16 << 10, '\0');
  if (buffer_.size() > 0) {
    const auto kept = buffer_.cdata();
    bytes.assign(static_cast<const char*>(kept.data()), kept.size());
    buffer_.clear();
    return bytes;
  }
  error_code error;
  bytes.resize(ReadSome(bytes.data(), bytes.size(), error));
  return bytes;
}

std::string RawClient::ReceiveUntil(const std::string& text) {
  std::string all;
  while (!absl::StrContains(all, text)) {
    const std::string more = Receive();
    if (more.empty()) break;
    all += more;
  }
  return all;
}

std::string RawClient::ReceiveAll(bool* ended) {
  std::string all;
  while (true) {
    errno = 0;
    const std::string more = Receive();
    if (more.empty()) break;
    all += more;
  }
  if (ended != nullptr) *ended = errno != EAGAIN && errno != EWOULDBLOCK;
  return all;
}

HttpAnswer RawClient::ReadAnswer(bool of_head_request) {
  http::response_parser<http::string_body> parser;
  parser.body_limit(uint64_t{64} << 20);
  parser.skip(of_head_request);
  error_code error;
  http::read(*this, buffer_, parser, error);
  HttpAnswer answer;
  if (!parser.is_header_done()) return answer;
  answer.whole = parser.is_done() && !error;
  answer.status = static_cast<int>(parser.get().result_int());
  for (const auto& field : parser.get()) {
    answer.headers[absl::AsciiStrToLower(std::string(field.name_string()))] =
        std::string(field.value());
  }
  answer.body = parser.get().body();
  return answer;
}

void RawClient::Close() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

std::string RequestBytes(const std::string& method, const std::string& target,
                         const std::string& body, const HttpFields& fields) {
  std::string bytes = absl::StrCat(method, " ", target, " HTTP/1.1\r\n");
  const auto add = [&](const std::string& name, const std::string& value) {
    for (const auto& [given, ignored] : fields) {
      if (absl::EqualsIgnoreCase(given, name)) return;
    }
    absl::StrAppend(&bytes, name, ": ", value, "\r\n");
  };
  add("Host", "127.0.0.1");
  if (method == "POST" || !body.empty()) {
    add("Content-Type", "application/json");
    add("Content-Length", absl::StrCat(body.size()));
  }
  for (const auto& [name, value] : fields) {
    absl::StrAppend(&bytes, name, ": ", value, "\r\n");
  }
  return absl::StrCat(bytes, "\r\n", body);
}

}  // namespace txl
