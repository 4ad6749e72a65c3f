#include "model/train/corpus.h"

#include <utf8proc.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

absl::StatusOr<std::vector<int32_t>> CodePoints(absl::string_view text) {
  std::vector<int32_t> points;
  points.reserve(text.size());
  size_t at = 0;
  while (at < text.size()) {
    utf8proc_int32_t point = 0;
    const utf8proc_ssize_t taken = utf8proc_iterate(
        reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
        static_cast<utf8proc_ssize_t>(text.size() - at), &point);
    if (taken <= 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the text is not UTF-8 at byte ", at, " (use bytes instead)"));
    }
    points.push_back(point);
    at += static_cast<size_t>(taken);
  }
  return points;
}

std::string Utf8(int32_t point) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(point, bytes);
  return std::string(reinterpret_cast<const char*>(bytes),
                     static_cast<size_t>(size));
}

// Fills symbols and returns the ids of the whole text.
absl::StatusOr<std::vector<int64_t>> CharacterIds(
    absl::string_view text, std::vector<std::string>& symbols) {
  TXL_ASSIGN_OR_RETURN(const std::vector<int32_t> points, CodePoints(text));
  std::map<int32_t, int64_t> ids;
  for (int32_t point : points) ids[point] = 0;
  for (auto& [point, id] : ids) {
    id = static_cast<int64_t>(symbols.size());
    symbols.push_back(Utf8(point));
  }
  std::vector<int64_t> all;
  all.reserve(points.size());
  for (int32_t point : points) all.push_back(ids[point]);
  return all;
}

std::vector<int64_t> ByteIds(absl::string_view text) {
  std::vector<int64_t> all;
  all.reserve(text.size());
  for (char c : text) all.push_back(static_cast<uint8_t>(c));
  return all;
}

}  // namespace

int64_t HeldOutBegin(int64_t count, double held_out_share) {
  return count - std::llround(static_cast<double>(count) * held_out_share);
}

absl::StatusOr<Corpus> MakeCorpus(absl::string_view text, CorpusVocabulary kind,
                                  double held_out_share) {
  if (text.empty()) return absl::InvalidArgumentError("the text is empty");
  if (!(held_out_share >= 0 && held_out_share < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "held_out: ", held_out_share, " is not a share in [0, 1)"));
  }
  Corpus corpus;
  corpus.kind = kind;
  std::vector<int64_t> ids;
  if (kind == CorpusVocabulary::kBytes) {
    ids = ByteIds(text);
  } else {
    TXL_ASSIGN_OR_RETURN(ids, CharacterIds(text, corpus.symbols));
  }
  const int64_t border =
      HeldOutBegin(static_cast<int64_t>(ids.size()), held_out_share);
  corpus.train.assign(ids.begin(), ids.begin() + border);
  corpus.held_out.assign(ids.begin() + border, ids.end());
  return corpus;
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

}  // namespace txl
