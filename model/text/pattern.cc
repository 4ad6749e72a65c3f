#include "model/text/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdlib>
#include <memory>
#include <utility>

namespace txl {
namespace {

using MatchData =
    std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)>;

const pcre2_code* Code(const void* code) {
  return static_cast<const pcre2_code*>(code);
}

PCRE2_SPTR Units(absl::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

MatchData NewMatchData(const void* code) {
  return MatchData(pcre2_match_data_create_from_pattern(Code(code), nullptr),
                   pcre2_match_data_free);
}

// "$1" is what the first group matched; places[2] to places[3].
void AppendReplacement(absl::string_view text, const std::string& replacement,
                       const PCRE2_SIZE* places, std::string& out) {
  for (size_t i = 0; i < replacement.size(); ++i) {
    if (replacement[i] != '$' || i + 1 == replacement.size()) {
      out += replacement[i];
      continue;
    }
    const auto group = static_cast<size_t>(replacement[++i] - '0');
    out.append(text.data() + places[2 * group],
               places[2 * group + 1] - places[2 * group]);
  }
}

size_t NextCharacter(absl::string_view text, size_t at) {
  do {
    ++at;
  } while (at < text.size() && (text[at] & 0xC0) == 0x80);
  return at;
}

}  // namespace

Pattern::Pattern(const std::string& pattern) {
  int error = 0;
  size_t error_offset = 0;
  pcre2_code* code =
      pcre2_compile(Units(pattern), pattern.size(), PCRE2_UTF | PCRE2_DOTALL,
                    &error, &error_offset, nullptr);
  if (code == nullptr) std::abort();
  is_native_ = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
  code_ = code;
}

Pattern::Pattern(Pattern&& other) noexcept
    : code_(std::exchange(other.code_, nullptr)),
      is_native_(other.is_native_) {}

Pattern::~Pattern() { pcre2_code_free(static_cast<pcre2_code*>(code_)); }

// Not pcre2_substitute, which reads the replacement anew for each match and,
// where the result is much longer than the text, does everything twice.
std::string Pattern::Replace(absl::string_view text,
                             const std::string& replacement) const {
  const MatchData data = NewMatchData(code_);
  const PCRE2_SIZE* const places = pcre2_get_ovector_pointer(data.get());
  // jit_match lacks only checks of the arguments, which short matches feel.
  const auto match = is_native_ ? pcre2_jit_match : pcre2_match;
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  size_t done = 0;  // what is before has been written
  size_t from = 0;
  while (from <= text.size() &&
         match(Code(code_), Units(text), text.size(), from, PCRE2_NO_UTF_CHECK,
               data.get(), nullptr) > 0) {
    out.append(text.data() + done, places[0] - done);
    AppendReplacement(text, replacement, places, out);
    done = places[1];
    from = done > places[0] ? done : NextCharacter(text, done);
  }
  return out.append(text.data() + done, text.size() - done);
}

bool Pattern::Matches(absl::string_view text) const {
  const MatchData data = NewMatchData(code_);
  return pcre2_match(Code(code_), Units(text), text.size(), 0,
                     PCRE2_NO_UTF_CHECK, data.get(), nullptr) >= 0;
}

}  // namespace txl
