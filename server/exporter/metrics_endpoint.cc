#include "server/exporter/metrics_endpoint.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"

namespace txl {
namespace {

// Two, so that one client that sends nothing does not hold up the other.
constexpr char kThreads[] = "2";
constexpr absl::Duration kKnockInterval = absl::Milliseconds(10);

// Connects to the address and hangs up.
void Knock(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found) !=
      0) {
    return;
  }
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0) continue;
    (void)connect(fd, at->ai_addr, at->ai_addrlen);
    close(fd);
  }
  freeaddrinfo(found);
}

std::string HostOf(const std::string& address) {
  return address.substr(0, address.rfind(':'));
}

std::string WithoutBrackets(const std::string& host) {
  return host.front() == '[' ? host.substr(1, host.size() - 2) : host;
}

}  // namespace

std::string CheckMetricsAddress(absl::string_view address) {
  const std::string wrong = absl::StrCat("\"", address, "\" is not HOST:PORT");
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return wrong;
  const absl::string_view port_text = address.substr(colon + 1);
  int port = 0;
  if (port_text.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(port_text, &port) || port > 65535) {
    return wrong;
  }
  const absl::string_view host = address.substr(0, colon);
  const bool brackets =
      host.size() > 2 && host.front() == '[' && host.back() == ']';
  // Commas and spaces would be further addresses to the HTTP server.
  if (host.find_first_of(", \t") != absl::string_view::npos ||
      (!brackets && host.find_first_of(":[]") != absl::string_view::npos)) {
    return wrong;
  }
  return "";
}

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Start(
    const std::string& address, ExporterFacts facts, StatusSource source) {
  if (std::string wrong = CheckMetricsAddress(address); !wrong.empty()) {
    return absl::InvalidArgumentError(wrong);
  }
  auto collector =
      std::make_shared<StatusCollector>(std::move(facts), std::move(source));
  const std::string timeout =
      absl::StrCat(absl::ToInt64Milliseconds(kReadTimeout));
  std::unique_ptr<prometheus::Exposer> exposer;
  try {
    exposer = std::make_unique<prometheus::Exposer>(std::vector<std::string>{
        "listening_ports", address, "num_threads", kThreads,
        "request_timeout_ms", timeout, "enable_keep_alive", "no"});
  } catch (const std::exception&) {  // what it says helps nobody
    return absl::UnavailableError(absl::StrCat("cannot listen on ", address));
  }
  exposer->RegisterCollectable(collector);
  return std::unique_ptr<MetricsEndpoint>(new MetricsEndpoint(
      HostOf(address), std::move(collector), std::move(exposer)));
}

MetricsEndpoint::MetricsEndpoint(std::string host,
                                 std::shared_ptr<StatusCollector> collector,
                                 std::unique_ptr<prometheus::Exposer> exposer)
    : host_(std::move(host)),
      port_(exposer->GetListeningPorts().at(0)),
      address_(absl::StrCat(host_, ":", port_)),
      collector_(std::move(collector)),
      exposer_(std::move(exposer)) {}

MetricsEndpoint::~MetricsEndpoint() {
  // The HTTP server looks every two seconds whether it should stop, or when
  // somebody connects.
  absl::Notification stopped;
  std::thread stop([&] {
    exposer_.reset();
    stopped.Notify();
  });
  const std::string host = WithoutBrackets(host_);
  while (!stopped.WaitForNotificationWithTimeout(kKnockInterval)) {
    Knock(host, port_);
  }
  stop.join();
}

}  // namespace txl
