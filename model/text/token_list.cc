#include "model/text/token_list.h"

#include "absl/strings/str_cat.h"

namespace txl {

absl::Status TokenList::Full() const {
  return absl::OutOfRangeError(
      absl::StrCat("more than ", max_tokens_, " tokens"));
}

}  // namespace txl
