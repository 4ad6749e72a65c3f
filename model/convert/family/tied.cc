#include "model/convert/family/tied.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

constexpr int64_t kPieceBytes = int64_t{1} << 22;

std::vector<int64_t> AnyOf(int64_t dims) {
  return std::vector<int64_t>(dims, -1);
}

}  // namespace

absl::StatusOr<bool> SameElements(const StoredTensor& a,
                                  const StoredTensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  if (SameView(a, b) || a.numel() == 0) return true;
  const int64_t rows = a.dims() == 0 ? 1 : a.shape[0];
  const int64_t step = std::max<int64_t>(
      kPieceBytes / std::max<int64_t>(a.bytes() / rows, 1), 1);
  for (int64_t begin = 0; begin < rows; begin += step) {
    const int64_t end = std::min(begin + step, rows);
    const bool whole = a.dims() == 0;
    TXL_ASSIGN_OR_RETURN(const std::string left,
                         ReadTensor(whole ? a : Rows(a, begin, end)));
    TXL_ASSIGN_OR_RETURN(const std::string right,
                         ReadTensor(whole ? b : Rows(b, begin, end)));
    if (left != right) return false;
  }
  return true;
}

bool IsTied(PlanBuilder& builder, const std::string& own,
            const std::string& other, std::optional<bool> configured) {
  TensorTable& table = builder.table;
  if (!table.Has(own)) {
    if (!configured.has_value()) {
      builder.Note(absl::StrCat(own, " is absent: taken as tied to ", other));
    }
    return configured.value_or(true);
  }
  if (!table.Has(other)) return false;
  const StoredTensor a = table.Take(own, AnyOf(table.Dims(own)));
  const StoredTensor b = table.Take(other, AnyOf(table.Dims(other)));
  if (!table.status().ok()) return true;
  if (SameView(a, b)) return true;
  if (!configured.value_or(false)) return false;
  const absl::StatusOr<bool> same = SameElements(a, b);
  if (!same.ok()) {
    table.Fail(std::string(same.status().message()));
  } else if (!*same) {
    table.Fail(absl::StrCat("tensors ", own, " and ", other,
                            " differ, but the configuration ties them"));
  } else {
    builder.Note(
        absl::StrCat(own, " is a copy of ", other, ": tied, as configured"));
  }
  return true;
}

}  // namespace txl
