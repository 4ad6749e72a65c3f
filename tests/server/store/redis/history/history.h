#pragma once

// What writers asked of one session and what they were told, and whether one
// order of their appends explains all of it (Herlihy, Wing 1990: appends take
// effect at one moment between question and answer). As every append has ids
// of its own, the text itself says the order: nothing has to be searched.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace txl::history {

// Bytes of an id in a text: `width` of the session.
inline constexpr size_t kIdBytes = 2;
inline constexpr int kMostIds = 4;  // of an append

class History {
 public:
  // A writer wants so many ids behind a text that it has seen. Returns the
  // append's number. REQUIRES: 1 <= count <= kMostIds; less than 16,384
  // appends.
  int Invoke(std::string seen, int count);
  // Its ids.
  std::string IdsOf(int append) const;
  // The appends whose ids these are, in their order; of those that begin in it.
  static std::vector<int> AppendsIn(const std::string& ids);

  // The writer is told that it is stored; the store was at this version then.
  // (A store's versions grow with each change, also across failovers.)
  void Acknowledge(int append, int64_t version);
  // The store is again what it was at `kept`: versions up to `now` are lost.
  void FailOver(int64_t kept, int64_t now);

  // The text was this, and its appends from a position on were taken back: they
  // need not be in it any more.
  void Rewind(const std::string& text, size_t position);

  // Somebody is told that this is the text now. Returns what is wrong with
  // that; empty: nothing. It has to be appends, each whole, once, and right
  // behind what its writer had seen; all that are acknowledged and not lost are
  // in it.
  std::string Read(const std::string& text) const;

 private:
  struct Append {
    std::string seen;
    int count = 0;
    bool taken_back = false;
  };
  struct Range {
    int64_t kept = 0;
    int64_t now = 0;
  };

  std::vector<Append> appends_;
  std::vector<std::pair<int, int64_t>> acknowledged_;  // and not lost
  std::vector<Range> lost_;
};

}  // namespace txl::history
