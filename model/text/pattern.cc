#include "model/text/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

namespace txl {
namespace {

constexpr size_t kSpareBytes = 64;  // most replacements add little

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

}  // namespace

Pattern::Pattern(const std::string& pattern) {
  int error = 0;
  size_t error_offset = 0;
  pcre2_code* code =
      pcre2_compile(Units(pattern), pattern.size(), PCRE2_UTF | PCRE2_DOTALL,
                    &error, &error_offset, nullptr);
  if (code == nullptr) std::abort();
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // works without it as well
  code_ = code;
}

Pattern::Pattern(Pattern&& other) noexcept
    : code_(std::exchange(other.code_, nullptr)) {}

Pattern::~Pattern() { pcre2_code_free(static_cast<pcre2_code*>(code_)); }

std::string Pattern::Replace(absl::string_view text,
                             const std::string& replacement) const {
  const MatchData data = NewMatchData(code_);
  std::string out(text.size() + kSpareBytes, '\0');
  int result = PCRE2_ERROR_NOMEMORY;
  while (result == PCRE2_ERROR_NOMEMORY) {
    size_t size = out.size();
    result = pcre2_substitute(
        Code(code_), Units(text), text.size(), 0,
        PCRE2_SUBSTITUTE_GLOBAL | PCRE2_SUBSTITUTE_OVERFLOW_LENGTH |
            PCRE2_NO_UTF_CHECK,
        data.get(), nullptr, Units(replacement), replacement.size(),
        reinterpret_cast<PCRE2_UCHAR*>(out.data()), &size);
    // Without room `size` is what it takes, the closing zero included.
    out.resize(size);
  }
  return result < 0 ? std::string(text) : out;
}

bool Pattern::Matches(absl::string_view text) const {
  const MatchData data = NewMatchData(code_);
  return pcre2_match(Code(code_), Units(text), text.size(), 0,
                     PCRE2_NO_UTF_CHECK, data.get(), nullptr) >= 0;
}

}  // namespace txl
