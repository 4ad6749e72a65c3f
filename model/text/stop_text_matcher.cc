#include "model/text/stop_text_matcher.h"

#include <algorithm>
#include <utility>

namespace txl {

StopTextMatcher::StopTextMatcher(std::vector<std::string> stop_texts,
                                 bool include_stop_text)
    : include_stop_text_(include_stop_text) {
  for (std::string& text : stop_texts) {
    if (text.empty()) continue;
    std::vector<size_t> borders = Borders(text);
    patterns_.push_back({std::move(text), std::move(borders), 0});
  }
}

StopTextMatcher::Output StopTextMatcher::Push(absl::string_view text) {
  Output output;
  held_.append(text.data(), text.size());
  // held_ already ended before the new bytes without a match.
  for (size_t i = held_.size() - text.size(); i < held_.size(); ++i) {
    const Pattern* match = Advance(held_[i]);
    if (match == nullptr) continue;
    const size_t end = i + 1;
    output.text =
        held_.substr(0, include_stop_text_ ? end : end - match->text.size());
    output.matched = match->text;
    held_.clear();
    return output;
  }
  size_t held_size = 0;
  for (const Pattern& pattern : patterns_) {
    held_size = std::max(held_size, pattern.matched);
  }
  output.text = held_.substr(0, held_.size() - held_size);
  held_.erase(0, output.text.size());
  return output;
}

std::string StopTextMatcher::Flush() {
  for (Pattern& pattern : patterns_) pattern.matched = 0;
  return std::exchange(held_, "");
}

std::vector<size_t> StopTextMatcher::Borders(absl::string_view text) {
  std::vector<size_t> borders(text.size() + 1, 0);
  size_t border = 0;
  for (size_t n = 1; n < text.size(); ++n) {
    while (border > 0 && text[n] != text[border]) border = borders[border];
    if (text[n] == text[border]) ++border;
    borders[n + 1] = border;
  }
  return borders;
}

const StopTextMatcher::Pattern* StopTextMatcher::Advance(char byte) {
  const Pattern* longest = nullptr;
  for (Pattern& pattern : patterns_) {
    size_t& matched = pattern.matched;
    while (matched > 0 && pattern.text[matched] != byte) {
      matched = pattern.borders[matched];
    }
    if (pattern.text[matched] == byte) ++matched;
    if (matched == pattern.text.size() &&
        (longest == nullptr || pattern.text.size() > longest->text.size())) {
      longest = &pattern;
    }
  }
  return longest;
}

}  // namespace txl
