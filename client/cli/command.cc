#include "client/cli/command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "client/call_error.h"
#include "client/text_check.h"
#include "program/command_line.h"
#include "program/flag_checks.h"
#include "program/help.h"

namespace txl::cli {

CLI::Validator ServerAddress() {
  return CLI::Validator(
      [](const std::string& address) {
        return std::string(ValidateAddress(address).message());
      },
      "");
}

CallOptions ServerFlags::call_options(Canceller* canceller) const {
  CallOptions options;
  if (timeout_seconds > 0) options.timeout = absl::Seconds(timeout_seconds);
  options.canceller = canceller;
  return options;
}

RetryPolicy ServerFlags::retry_policy() const {
  return {.max_failures = attempts};
}

void AddServerFlags(CLI::App& command, ServerFlags* flags) {
  command
      .add_option("--server", flags->channel.address,
                  "server address, HOST:PORT or unix:PATH")
      ->type_name("ADDRESS")
      ->envname("TXL_SERVER")
      ->check(ServerAddress())
      ->capture_default_str();
  AddConnectionFlags(command, flags);
}

void AddConnectionFlags(CLI::App& command, ServerFlags* flags) {
  CLI::Option* tls = command.add_flag("--tls", flags->channel.tls,
                                      "encrypt the connection [default: off]");
  command
      .add_option("--ca", flags->channel.ca_file,
                  "PEM file with the roots to trust [default: gRPC's]")
      ->needs(tls)
      ->check(CLI::ExistingFile);
  CLI::Option* certificate =
      command
          .add_option("--tls-cert", flags->channel.certificate_file,
                      "PEM file with the client certificate [default: none]")
          ->needs(tls)
          ->check(CLI::ExistingFile);
  CLI::Option* key =
      command
          .add_option("--tls-key", flags->channel.tls_key_file,
                      "PEM file with the certificate's private key")
          ->needs(certificate)
          ->check(CLI::ExistingFile);
  certificate->needs(key);
  command
      .add_option("--key-file", flags->channel.key_file,
                  "file with the API key, for a server with --keys")
      ->type_name("FILE")
      ->envname("TXL_KEY_FILE");
  command
      .add_option("--timeout", flags->timeout_seconds,
                  "longest time of a call in seconds, 0: no limit")
      ->check(Seconds())
      ->capture_default_str();
}

void AddRetryFlags(CLI::App& command, ServerFlags* flags) {
  command
      .add_option("--attempts", flags->attempts,
                  "attempts in a row for a turn that breaks off, 1: no retry")
      ->check(AtLeast(1))
      ->capture_default_str();
}

CLI::Validator Seconds() {
  return Between(0, kMostSeconds).description(">= 0");
}

CLI::Validator SentText() {
  return CLI::Validator(
      [](const std::string& text) {
        return std::string(CheckUtf8("it", text).message());
      },
      "");
}

CLI::Validator SentName() {
  return CLI::Validator(
      [](const std::string& text) {
        return text.empty() ? "is empty" : SentText()(text);
      },
      "");
}

v1::UnknownText UnknownTextOf(absl::string_view word) {
  if (word == kSkipUnknown) return v1::UNKNOWN_TEXT_SKIP;
  if (word == kUnknownSymbol) return v1::UNKNOWN_TEXT_SYMBOL;
  return v1::UNKNOWN_TEXT_UNSPECIFIED;
}

int WithClient(const ServerFlags& flags,
               const std::function<int(Client&)>& body) {
  absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Create(flags.channel);
  if (!client.ok()) return FailUsage(std::string(client.status().message()));
  return body(**client);
}

void Complain(const std::string& message) {
  const std::string name =
      Emphasize("txl:", Emphasis::kError, WantsColor(STDERR_FILENO));
  std::fprintf(stderr, "%s %s\n", name.c_str(), message.c_str());
}

int Fail(const absl::Status& status) {
  // gRPC's own answer, which says nothing.
  const bool no_method =
      absl::IsUnimplemented(status) && status.message().empty();
  constexpr char kHint[] =
      "not served at this address; txl admin needs the server's "
      "--admin-listen, other commands its --listen";
  Complain(DescribeError(no_method ? About(kHint, status) : status));
  return kFailed;
}

int FailUsage(const std::string& message) {
  Complain(message);
  return kUsage;
}

int FailInput(const absl::Status& status) {
  return absl::IsInvalidArgument(status)
             ? FailUsage(std::string(status.message()))
             : Fail(status);
}

int FailInterrupted() {
  Complain("interrupted");
  return kInterrupted;
}

}  // namespace txl::cli
