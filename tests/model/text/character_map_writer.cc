#include "tests/model/text/character_map_writer.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace txl {
namespace {

// Keys that share their first `depth` bytes.
using Keys = std::map<std::string, uint32_t>;

class TrieWriter {
 public:
  std::vector<uint32_t> Write(const Keys& keys) {
    units_.assign(1, 0);
    taken_ = {0};
    PlaceChildren(0, 0, keys, 0);
    return units_;
  }

 private:
  // Gives the node at `at` its children. A child of label b stands at base ^ b,
  // a value at base.
  void PlaceChildren(uint32_t at, uint32_t label, const Keys& keys,
                     size_t depth) {
    std::map<unsigned char, Keys> children;
    bool has_value = false;
    uint32_t value = 0;
    for (const auto& [key, number] : keys) {
      if (key.size() == depth) {
        has_value = true;
        value = number;
      } else {
        children[static_cast<unsigned char>(key[depth])][key] = number;
      }
    }
    const uint32_t base = FreeBase(children);
    units_[at] = (at ^ base) << 10 | label | (has_value ? 0x100u : 0u);
    if (has_value) units_[base] = value | 0x80000000u;
    for (const auto& [byte, below] : children) taken_.insert(base ^ byte);
    for (const auto& [byte, below] : children) {
      PlaceChildren(base ^ byte, byte, below, depth + 1);
    }
  }

  uint32_t FreeBase(const std::map<unsigned char, Keys>& children) {
    uint32_t base = 0;
    bool is_free = false;
    while (!is_free) {
      base += 1;
      is_free = taken_.count(base) == 0;
      for (const auto& [byte, below] : children) {
        is_free = is_free && taken_.count(base ^ byte) == 0;
      }
    }
    taken_.insert(base);
    // Every byte may be looked up from here.
    if (units_.size() < (base | 0xFFu) + 1) units_.resize((base | 0xFFu) + 1);
    return base;
  }

  std::vector<uint32_t> units_;
  std::set<uint32_t> taken_;
};

void AppendWord(uint32_t word, std::string& out) {
  for (int i = 0; i < 4; ++i) {
    out.push_back(static_cast<char>(word >> (8 * i) & 0xFF));
  }
}

}  // namespace

std::string CharacterMapBytes(const std::map<std::string, std::string>& rules) {
  std::string texts;
  Keys keys;
  for (const auto& [from, to] : rules) {
    keys[from] = static_cast<uint32_t>(texts.size());
    texts += to + '\0';
  }
  const std::vector<uint32_t> units = TrieWriter().Write(keys);
  std::string out;
  AppendWord(static_cast<uint32_t>(units.size() * 4), out);
  for (const uint32_t unit : units) AppendWord(unit, out);
  return out + texts;
}

}  // namespace txl
