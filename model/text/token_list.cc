#include "model/text/token_list.h"

#include "absl/strings/str_cat.h"

namespace txl {

absl::Status TokenList::Full() const {
  return absl::OutOfRangeError(
      absl::StrCat("more than ", options_.max_tokens, " tokens"));
}

}  // namespace txl
