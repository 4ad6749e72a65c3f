#include "tests/server/store/redis/history/history.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace txl::history {
namespace {

int NumberAt(const std::string& text, size_t at) {
  return static_cast<uint8_t>(text[at]) << 8 |
         static_cast<uint8_t>(text[at + 1]);
}

std::string Encode(int number) {
  return {static_cast<char>(number >> 8), static_cast<char>(number & 0xff)};
}

}  // namespace

int History::Invoke(std::string seen, int count) {
  appends_.push_back({.seen = std::move(seen), .count = count});
  return static_cast<int>(appends_.size()) - 1;
}

std::string History::IdsOf(int append) const {
  std::string ids;
  for (int i = 0; i < appends_[append].count; ++i) {
    ids += Encode(append * kMostIds + i);
  }
  return ids;
}

std::vector<int> History::AppendsIn(const std::string& ids) {
  std::vector<int> appends;
  for (size_t at = 0; at + 1 < ids.size(); at += kIdBytes) {
    const int number = NumberAt(ids, at);
    if (number % kMostIds == 0) appends.push_back(number / kMostIds);
  }
  return appends;
}

void History::Acknowledge(int append, int64_t version) {
  for (const Range& range : lost_) {
    if (version > range.kept && version <= range.now) return;
  }
  acknowledged_.emplace_back(append, version);
}

void History::FailOver(int64_t kept, int64_t now) {
  lost_.push_back({kept, now});
  std::erase_if(acknowledged_,
                [kept](const auto& known) { return known.second > kept; });
}

void History::Rewind(const std::string& text, size_t position) {
  const size_t from = std::min(position * kIdBytes, text.size());
  for (const int append : AppendsIn(text.substr(from))) {
    appends_[append].taken_back = true;
  }
}

std::string History::Read(const std::string& text) const {
  std::set<int> found;
  size_t at = 0;
  while (at < text.size()) {
    if (at + kIdBytes > text.size()) return "half an id";
    const int append = NumberAt(text, at) / kMostIds;
    const bool known = append < static_cast<int>(appends_.size());
    const std::string ids = known ? IdsOf(append) : "";
    if (!known || text.compare(at, ids.size(), ids) != 0) {
      return absl::StrCat("at id ", at / kIdBytes, ": not a whole append");
    }
    if (!found.insert(append).second) {
      return absl::StrCat("append ", append, " is there twice");
    }
    const std::string& seen = appends_[append].seen;
    if (seen.size() != at || text.compare(0, at, seen) != 0) {
      return absl::StrCat("append ", append,
                          " is joined to a text that its writer never saw");
    }
    at += ids.size();
  }
  for (const auto& [append, version] : acknowledged_) {
    if (!found.contains(append) && !appends_[append].taken_back) {
      return absl::StrCat("append ", append, ", acknowledged at version ",
                          version, ", is gone");
    }
  }
  return "";
}

}  // namespace txl::history
