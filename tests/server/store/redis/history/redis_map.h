#pragma once

// The commands of Redis that the function library calls, over a map that can be
// copied: what a store held at some time.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace txl::history {

using Words = std::vector<std::string>;

// Nothing, a number, a text, or texts of which some may be absent.
using Reply = std::variant<std::monostate, int64_t, std::string,
                           std::vector<std::optional<std::string>>>;

class RedisMap {
 public:
  // As Redis answers it. Errors: InvalidArgument for a command that it does
  // not have, or not with so many words.
  absl::StatusOr<Reply> Call(const Words& words);

  int64_t now_millis = 0;  // TIME

  // For looking in from outside; empty where it is absent.
  std::string Text(const std::string& key) const;
  std::string Field(const std::string& key, const std::string& field) const;

 private:
  Reply CallOnHash(const Words& words);
  Reply CallOnText(const Words& words);
  Reply CallOnSet(const Words& words);
  int64_t Delete(const Words& words);

  std::map<std::string, std::map<std::string, std::string>> hashes_;
  std::map<std::string, std::string> texts_;
  std::map<std::string, std::map<std::string, std::string>> sets_;  // scores
};

}  // namespace txl::history
