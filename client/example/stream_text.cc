// Streams one turn of a session: stream_text SERVER SESSION PROMPT. The turn
// survives a lost connection.

#include <cstdio>
#include <memory>

#include "absl/status/statusor.h"
#include "client/call_error.h"
#include "client/client.h"
#include "client/retrying_client.h"

namespace {

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", txl::DescribeError(status).c_str());
  return 1;
}

// A session that is there already is gone on with.
absl::Status MakeSession(txl::Client& client, const char* id) {
  txl::v1::CreateSessionRequest request;
  request.set_session_id(id);
  const absl::Status status = client.CreateSession(request).status();
  return absl::IsAlreadyExists(status) ? absl::OkStatus() : status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s SERVER SESSION PROMPT\n", argv[0]);
    return 2;
  }
  txl::ChannelOptions server;
  server.address = argv[1];
  absl::StatusOr<std::unique_ptr<txl::Client>> client =
      txl::Client::Create(server);
  if (!client.ok()) return Fail(client.status());
  absl::Status status = MakeSession(**client, argv[2]);
  if (!status.ok()) return Fail(status);

  txl::v1::GenerateRequest request;
  request.set_session_id(argv[2]);
  request.set_text(argv[3]);
  txl::RetryingClient retrying(client->get(), txl::RetryPolicy());
  status = retrying.Generate(
      request, {}, [](const txl::v1::GenerateResponse& response) {
        const std::string& text = response.has_finished()
                                      ? response.finished().text()
                                      : response.token().text();
        std::fputs(text.c_str(), stdout);
        std::fflush(stdout);
      });
  std::puts("");
  return status.ok() ? 0 : Fail(status);
}
