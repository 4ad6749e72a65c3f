#include "server/store/redis/redis_shards.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "model/base/status_macros.h"
#include "server/store/redis/function_library.h"
#include "server/store/redis/redis_calls.h"

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

RedisShards::RedisShards(std::vector<RedisAddress> addresses,
                         absl::Duration timeout)
    : timeout_(timeout) {
  for (RedisAddress& address : addresses) {
    shards_.push_back({std::move(address), nullptr});
  }
}

size_t RedisShards::Of(const std::string& session_id) const {
  return ShardOf(RedisNameOf(session_id), shards_.size());
}

absl::Status RedisShards::Check() {
  for (Shard& shard : shards_) {
    const absl::Status checked = CheckOne(shard);
    if (checked.ok()) continue;
    return absl::Status(checked.code(), absl::StrCat(shard.address.text(), ": ",
                                                     checked.message()));
  }
  return absl::OkStatus();
}

absl::Status RedisShards::CheckOne(Shard& shard) {
  TXL_ASSIGN_OR_RETURN(shard.connection,
                       RedisConnection::Open(shard.address, timeout_));
  TXL_ASSIGN_OR_RETURN(const std::vector<std::string> info,
                       shard.connection->CallOne({"INFO"}));
  TXL_ASSIGN_OR_RETURN(
      const std::vector<std::string> sync,
      shard.connection->CallOne({"CONFIG", "GET", "appendfsync"}));
  const std::string appendfsync = sync.size() == 2 ? sync[1] : "";
  TXL_RETURN_IF_ERROR(CheckRedis(info.empty() ? "" : info[0], appendfsync));
  late_ = late_ || appendfsync != "always";
  return Connect(shard);
}

absl::Status RedisShards::Connect(Shard& shard) {
  TXL_ASSIGN_OR_RETURN(shard.connection,
                       RedisConnection::Open(shard.address, timeout_));
  const RedisAnswer loaded =
      shard.connection->CallOne({"FUNCTION", "LOAD", RedisFunctionLibrary()});
  if (loaded.ok() ||
      absl::StrContains(loaded.status().message(), "already exists")) {
    return absl::OkStatus();
  }
  shard.connection.reset();
  return loaded.status();
}

absl::Status RedisShards::Call(size_t shard,
                               const std::vector<RedisCommand>& commands,
                               std::vector<RedisAnswer>* answers) {
  Shard& called = shards_[shard];
  const bool old = called.connection != nullptr;
  if (!old) TXL_RETURN_IF_ERROR(Connect(called));
  absl::Status status = called.connection->Call(commands, answers);
  if (status.ok()) {
    // It was emptied: connecting brings them back.
    for (const RedisAnswer& answer : *answers) {
      if (absl::StartsWith(answer.status().message(), kNoFunctions)) {
        called.connection.reset();
      }
    }
    return status;
  }
  called.connection.reset();
  if (!old || !answers->empty()) return status;
  // It may have been closed while nobody asked; a repeated call does nothing
  // twice.
  TXL_RETURN_IF_ERROR(Connect(called));
  status = called.connection->Call(commands, answers);
  if (!status.ok()) called.connection.reset();
  return status;
}

RedisAnswer RedisShards::CallOne(size_t shard, const RedisCommand& command) {
  std::vector<RedisAnswer> answers;
  const absl::Status called = Call(shard, {command}, &answers);
  return called.ok() ? std::move(answers[0]) : RedisAnswer(called);
}

}  // namespace txl
