#include "server/store/redis/redis_connection.h"

#include <hiredis/hiredis.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

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

}  // namespace txl
