#include "client/fleet/options.h"

#include "absl/strings/str_cat.h"

namespace txl::fleet {

absl::Status CheckCell(const CellOptions& options) {
  for (const Failure& failure : options.recovery.failures) {
    if (failure.servers > options.servers) {
      return absl::InvalidArgumentError(
          absl::StrCat("a cell of ", options.servers, " servers cannot lose ",
                       failure.servers));
    }
  }
  return absl::OkStatus();
}

}  // namespace txl::fleet
