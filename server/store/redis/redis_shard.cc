#include "server/store/redis/redis_shard.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "model/base/status_macros.h"
#include "server/store/redis/function_library.h"

namespace txl {
namespace {

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
      what, " is \"", is, "\", which loses sessions; it has to be ", wanted));
}

}  // namespace

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

absl::Status RedisShard::Check() {
  const absl::Status checked = CheckSettings();
  if (checked.ok()) return checked;
  return absl::Status(checked.code(),
                      absl::StrCat(address_.text(), ": ", checked.message()));
}

absl::Status RedisShard::CheckSettings() {
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

absl::Status RedisShard::Connect() {
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

absl::Status RedisShard::Call(const std::vector<RedisCommand>& commands,
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

RedisAnswer RedisShard::CallOne(const RedisCommand& command) {
  std::vector<RedisAnswer> answers;
  const absl::Status called = Call({command}, &answers);
  return called.ok() ? std::move(answers[0]) : RedisAnswer(called);
}

}  // namespace txl
