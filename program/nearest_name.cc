#include "program/nearest_name.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace txl {
namespace {

// Damerau's and Levenshtein's distance: the optimal string alignment.
size_t Changes(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before(b.size() + 1);  // two rows above
  std::vector<size_t> above(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row.back();
}

}  // namespace

std::string NearestName(absl::string_view wanted,
                        const std::vector<std::string>& names,
                        size_t most_changes) {
  std::string nearest;
  size_t most = std::min(wanted.size() / 3, most_changes);
  for (const std::string& name : names) {
    // No name that is so much longer or shorter is nearer.
    if (std::max(name.size(), wanted.size()) -
            std::min(name.size(), wanted.size()) >
        most) {
      continue;
    }
    const size_t changes = Changes(wanted, name);
    if (changes > most || (changes == most && !nearest.empty())) continue;
    most = changes;
    nearest = name;
  }
  return nearest;
}

std::string DidYouMean(absl::string_view wanted,
                       const std::vector<std::string>& names) {
  const std::string nearest = NearestName(wanted, names);
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?");
}

}  // namespace txl
