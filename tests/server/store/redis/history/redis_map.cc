#include "tests/server/store/redis/history/redis_map.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace txl::history {
namespace {

std::optional<std::string> Find(const std::map<std::string, std::string>& map,
                                const std::string& key) {
  const auto found = map.find(key);
  if (found == map.end()) return std::nullopt;
  return found->second;
}

Reply OrNothing(std::optional<std::string> text) {
  if (!text) return std::monostate();
  return *std::move(text);
}

size_t Number(const std::string& word) {
  uint64_t number = 0;
  return absl::SimpleAtoi(word, &number) ? number : 0;
}

}  // namespace

std::string RedisMap::Text(const std::string& key) const {
  return Find(texts_, key).value_or("");
}

std::string RedisMap::Field(const std::string& key,
                            const std::string& field) const {
  const auto hash = hashes_.find(key);
  return hash == hashes_.end() ? "" : Find(hash->second, field).value_or("");
}

absl::StatusOr<Reply> RedisMap::Call(const Words& words) {
  // With the words that each has at least.
  static const std::map<std::string, size_t> kLengths = {
      {"TIME", 1},  {"DEL", 2},      {"HGET", 3},     {"HMGET", 3},
      {"HSET", 4},  {"GET", 2},      {"SET", 3},      {"APPEND", 3},
      {"ZADD", 4},  {"SETRANGE", 4}, {"GETRANGE", 4}, {"ZREM", 3},
      {"ZSCORE", 3}};
  const auto length = words.empty() ? kLengths.end() : kLengths.find(words[0]);
  if (length == kLengths.end() || words.size() < length->second) {
    return absl::InvalidArgumentError(
        absl::StrCat("not known: ", words.empty() ? "" : words[0]));
  }
  const std::string& name = words[0];
  if (name == "TIME") {
    return std::vector<std::optional<std::string>>{
        absl::StrCat(now_millis / 1000),
        absl::StrCat(now_millis % 1000 * 1000)};
  }
  if (name == "DEL") return Delete(words);
  if (name[0] == 'H') return CallOnHash(words);
  return name[0] == 'Z' ? CallOnSet(words) : CallOnText(words);
}

int64_t RedisMap::Delete(const Words& words) {
  size_t deleted = 0;
  for (size_t i = 1; i < words.size(); ++i) {
    deleted += hashes_.erase(words[i]) + texts_.erase(words[i]) +
               sets_.erase(words[i]);
  }
  return static_cast<int64_t>(deleted);
}

Reply RedisMap::CallOnHash(const Words& words) {
  if (words[0] == "HSET") {
    std::map<std::string, std::string>& hash = hashes_[words[1]];
    const size_t before = hash.size();
    for (size_t i = 2; i + 1 < words.size(); i += 2) {
      hash[words[i]] = words[i + 1];
    }
    return static_cast<int64_t>(hash.size() - before);
  }
  static const std::map<std::string, std::string> kEmpty;
  const auto found = hashes_.find(words[1]);
  const auto& hash = found == hashes_.end() ? kEmpty : found->second;
  if (words[0] == "HGET") return OrNothing(Find(hash, words[2]));
  std::vector<std::optional<std::string>> values;
  for (size_t i = 2; i < words.size(); ++i) {
    values.push_back(Find(hash, words[i]));
  }
  return values;
}

Reply RedisMap::CallOnText(const Words& words) {
  const std::string& key = words[1];
  if (words[0] == "GET") return OrNothing(Find(texts_, key));
  if (words[0] == "GETRANGE") {
    const std::string text = Text(key);
    const size_t from = std::min(Number(words[2]), text.size());
    const size_t end = std::max(from, Number(words[3]) + 1);
    return text.substr(from, end - from);
  }
  // A part that is nothing makes no text.
  if (words[0] == "SETRANGE" && words[3].empty()) {
    return static_cast<int64_t>(Text(key).size());
  }
  std::string& text = texts_[key];
  if (words[0] == "SET") {
    text = words[2];
    return std::string("OK");
  }
  if (words[0] == "APPEND") {
    text += words[2];
  } else {
    const size_t from = Number(words[2]);
    text.resize(std::max(text.size(), from + words[3].size()), '\0');
    text.replace(from, words[3].size(), words[3]);
  }
  return static_cast<int64_t>(text.size());
}

Reply RedisMap::CallOnSet(const Words& words) {
  const bool adds = words[0] == "ZADD";
  const auto found = sets_.find(words[1]);
  if (found == sets_.end() && !adds) {
    return words[0] == "ZREM" ? Reply(int64_t{0}) : Reply();
  }
  std::map<std::string, std::string>& set =
      adds ? sets_[words[1]] : found->second;
  if (words[0] == "ZSCORE") return OrNothing(Find(set, words[2]));
  if (adds) {
    const bool is_new = !set.contains(words[3]);
    set[words[3]] = words[2];
    return static_cast<int64_t>(is_new);
  }
  const size_t removed = set.erase(words[2]);
  // A set without members is none.
  if (set.empty()) sets_.erase(found);
  return static_cast<int64_t>(removed);
}

}  // namespace txl::history
