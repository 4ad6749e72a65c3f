#include "client/fleet/fleet.h"

#include "absl/strings/str_cat.h"
#include "client/fleet/cell.h"

namespace txl::fleet {

absl::StatusOr<FleetResult> SimulateFleet(const FleetOptions& options) {
  if (options.sample > options.cells) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a sample of ", options.sample, " from ", options.cells, " cells"));
  }
  const absl::Status checked = CheckCell(options.cell);
  if (!checked.ok()) return checked;
  FleetResult result;
  result.options = options;
  for (int32_t i = 0; i < options.sample; ++i) {
    CellOptions cell_options = options.cell;
    cell_options.seed += static_cast<uint64_t>(i);
    Cell cell(&cell_options);
    result.figures.Merge(cell.Run());
    result.sessions_touched += cell.sessions_touched();
  }
  return result;
}

}  // namespace txl::fleet
