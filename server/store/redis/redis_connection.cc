#include "server/store/redis/redis_connection.h"

#include <hiredis/hiredis.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "model/base/status_macros.h"
#include "server/store/redis/function_library.h"

namespace txl {
namespace {

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};

absl::Status ErrorOf(absl::string_view text) {
  for (const char* full : {"OOM ", "MISCONF "}) {
    if (absl::StartsWith(text, full)) {
      return absl::ResourceExhaustedError(text);
    }
  }
  for (const char* later : {"LOADING ", "BUSY ", "READONLY ", "MASTERDOWN ",
                            "NOREPLICAS ", "ERR Function not found"}) {
    if (absl::StartsWith(text, later)) return absl::UnavailableError(text);
  }
  return absl::InternalError(text);
}

void Flatten(const redisReply& reply, std::vector<std::string>& out) {
  switch (reply.type) {
    case REDIS_REPLY_ARRAY:
      for (size_t i = 0; i < reply.elements; ++i) {
        Flatten(*reply.element[i], out);
      }
      break;
    case REDIS_REPLY_INTEGER:
      out.push_back(absl::StrCat(reply.integer));
      break;
    default:
      out.emplace_back(reply.str == nullptr ? "" : reply.str, reply.len);
  }
}

RedisAnswer AnswerOf(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_ERROR) {
    return ErrorOf(absl::string_view(reply.str, reply.len));
  }
  std::vector<std::string> words;
  Flatten(reply, words);
  return words;
}

constexpr int kLeastVersion = 7;
constexpr char kNoFunctions[] = "ERR Function not found";

// A field of INFO; "": there is none.
absl::string_view FieldOf(absl::string_view info, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(info, "\r\n")) {
    if (absl::StartsWith(line, name) && line.substr(name.size(), 1) == ":") {
      return line.substr(name.size() + 1);
    }
  }
  return "";
}

absl::Status Refused(absl::string_view what, absl::string_view is,
                     absl::string_view wanted) {
  return absl::FailedPreconditionError(absl::StrCat(
      what, " is \"", is, "\", which loses sessions; it must be ", wanted));
}

}  // namespace

void RedisConnection::Free::operator()(redisContext* context) const {
  redisFree(context);
}

RedisConnection::RedisConnection(std::string address,
                                 std::unique_ptr<redisContext, Free> context)
    : address_(std::move(address)), context_(std::move(context)) {}

RedisConnection::~RedisConnection() = default;

absl::StatusOr<std::unique_ptr<RedisConnection>> RedisConnection::Open(
    const RedisAddress& address, absl::Duration timeout) {
  const timeval most = absl::ToTimeval(timeout);
  std::unique_ptr<redisContext, Free> context(
      redisConnectWithTimeout(address.host.c_str(), address.port, most));
  if (context == nullptr) return absl::UnavailableError("no memory for Redis");
  std::unique_ptr<RedisConnection> connection(
      new RedisConnection(address.text(), std::move(context)));
  redisContext* const made = connection->context_.get();
  if (made->err != 0 || redisSetTimeout(made, most) != REDIS_OK) {
    return connection->Broken();
  }
  // A peer that vanished is noticed while nobody asks it anything.
  (void)redisEnableKeepAlive(made);
  return connection;
}

absl::Status RedisConnection::Broken() const {
  return absl::UnavailableError(
      absl::StrCat("Redis at ", address_, ": ", context_->errstr));
}

absl::Status RedisConnection::Call(const std::vector<RedisCommand>& commands,
                                   std::vector<RedisAnswer>* answers) {
  for (const RedisCommand& command : commands) {
    std::vector<const char*> words;
    std::vector<size_t> sizes;
    for (const std::string& word : command) {
      words.push_back(word.data());
      sizes.push_back(word.size());
    }
    if (redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()),
                               words.data(), sizes.data()) != REDIS_OK) {
      return Broken();
    }
  }
  for (size_t i = 0; i < commands.size(); ++i) {
    void* reply = nullptr;
    if (redisGetReply(context_.get(), &reply) != REDIS_OK) return Broken();
    const std::unique_ptr<redisReply, FreeReply> held(
        static_cast<redisReply*>(reply));
    answers->push_back(AnswerOf(*held));
  }
  return absl::OkStatus();
}

RedisAnswer RedisConnection::CallOne(const RedisCommand& command) {
  std::vector<RedisAnswer> answers;
  const absl::Status called = Call({command}, &answers);
  return called.ok() ? std::move(answers[0]) : RedisAnswer(called);
}

std::string RedisAddress::text() const {
  return host.find(':') == std::string::npos
             ? absl::StrCat(host, ":", port)
             : absl::StrCat("[", host, "]:", port);
}

absl::StatusOr<RedisAddress> ParseRedisAddress(absl::string_view text) {
  if (absl::StrContains(text, ',')) {
    return absl::InvalidArgumentError(absl::StrCat(
        "takes one address of Redis, redis://HOST:PORT, not several: \"", text,
        "\""));
  }
  const absl::Status bad = absl::InvalidArgumentError(absl::StrCat(
      "no address of a store: \"", text, "\"; one is redis://HOST:PORT"));
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "redis://")) return bad;
  absl::ConsumeSuffix(&rest, "/");
  const size_t colon = rest.rfind(':');
  if (colon == absl::string_view::npos) return bad;
  RedisAddress address;
  absl::string_view host = rest.substr(0, colon);
  const bool bracketed = absl::ConsumePrefix(&host, "[");
  if (bracketed != absl::ConsumeSuffix(&host, "]")) return bad;
  if (host.empty() || host.find_first_of("@/[]") != host.npos) return bad;
  if (!bracketed && host.find(':') != host.npos) return bad;
  address.host = std::string(host);
  if (!absl::SimpleAtoi(rest.substr(colon + 1), &address.port) ||
      address.port < 1 || address.port > 65535) {
    return bad;
  }
  return address;
}

absl::Status CheckRedis(absl::string_view info, absl::string_view appendfsync) {
  const absl::string_view version = FieldOf(info, "redis_version");
  int major = 0;
  (void)absl::SimpleAtoi(version.substr(0, version.find('.')), &major);
  if (major < kLeastVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "redis_version is ", version, "; functions need 7 or later"));
  }
  if (const auto role = FieldOf(info, "role"); role != "master") {
    return Refused("role", role, "master");
  }
  if (const auto aof = FieldOf(info, "aof_enabled"); aof != "1") {
    return Refused("appendonly", aof == "0" ? "no" : aof, "yes");
  }
  if (const auto policy = FieldOf(info, "maxmemory_policy");
      policy != "noeviction") {
    return Refused("maxmemory-policy", policy, "noeviction");
  }
  if (appendfsync != "always" && appendfsync != "everysec") {
    return Refused("appendfsync", appendfsync, "always (or everysec)");
  }
  return absl::OkStatus();
}

absl::Status RedisLink::Check() {
  const absl::Status checked = CheckSettings();
  if (checked.ok()) return checked;
  return absl::Status(checked.code(),
                      absl::StrCat(address_.text(), ": ", checked.message()));
}

absl::Status RedisLink::CheckSettings() {
  TXL_ASSIGN_OR_RETURN(connection_, RedisConnection::Open(address_, timeout_));
  TXL_ASSIGN_OR_RETURN(const std::vector<std::string> info,
                       connection_->CallOne({"INFO"}));
  TXL_ASSIGN_OR_RETURN(const std::vector<std::string> sync,
                       connection_->CallOne({"CONFIG", "GET", "appendfsync"}));
  const std::string appendfsync = sync.size() == 2 ? sync[1] : "";
  TXL_RETURN_IF_ERROR(CheckRedis(info.empty() ? "" : info[0], appendfsync));
  late_ = appendfsync != "always";
  return Connect();
}

absl::Status RedisLink::Connect() {
  TXL_ASSIGN_OR_RETURN(connection_, RedisConnection::Open(address_, timeout_));
  const RedisAnswer loaded =
      connection_->CallOne({"FUNCTION", "LOAD", RedisFunctionLibrary()});
  if (loaded.ok() ||
      absl::StrContains(loaded.status().message(), "already exists")) {
    return absl::OkStatus();
  }
  connection_.reset();
  return loaded.status();
}

absl::Status RedisLink::Call(const std::vector<RedisCommand>& commands,
                             std::vector<RedisAnswer>* answers) {
  const bool old = connection_ != nullptr;
  if (!old) TXL_RETURN_IF_ERROR(Connect());
  absl::Status status = connection_->Call(commands, answers);
  if (status.ok()) {
    // It was emptied: connecting brings them back.
    for (const RedisAnswer& answer : *answers) {
      if (absl::StartsWith(answer.status().message(), kNoFunctions)) {
        connection_.reset();
      }
    }
    return status;
  }
  connection_.reset();
  if (!old || !answers->empty()) return status;
  // It may have been closed while nobody asked; a repeated call does nothing
  // twice.
  TXL_RETURN_IF_ERROR(Connect());
  status = connection_->Call(commands, answers);
  if (!status.ok()) connection_.reset();
  return status;
}

RedisAnswer RedisLink::CallOne(const RedisCommand& command) {
  std::vector<RedisAnswer> answers;
  const absl::Status called = Call({command}, &answers);
  return called.ok() ? std::move(answers[0]) : RedisAnswer(called);
}

}  // namespace txl
