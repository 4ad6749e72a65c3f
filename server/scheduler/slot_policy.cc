#include "server/scheduler/slot_policy.h"

namespace txl {

SlotChoice ChooseSlot(absl::Span<const SlotView> slots, uint64_t key,
                      absl::Duration min_idle) {
  using Kind = SlotChoice::Kind;
  SlotChoice choice{Kind::kRefuse, -1};
  for (int32_t i = 0; i < static_cast<int32_t>(slots.size()); ++i) {
    const SlotView& slot = slots[i];
    if (slot.key == key) {
      return slot.leaving ? SlotChoice{Kind::kWait, -1}
                          : SlotChoice{Kind::kResident, i};
    }
    if (choice.kind == Kind::kFree) continue;
    if (!slot.key.has_value()) {
      choice = {Kind::kFree, i};
    } else if (slot.running) {
      if (choice.kind == Kind::kRefuse) choice = {Kind::kWait, -1};
    } else if (slot.idle >= min_idle && (choice.kind != Kind::kEvict ||
                                         slot.idle > slots[choice.slot].idle)) {
      choice = {Kind::kEvict, i};
    }
  }
  return choice;
}

}  // namespace txl
