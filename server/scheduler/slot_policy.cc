#include "server/scheduler/slot_policy.h"

namespace txl {

SlotChoice ChooseSlot(const SlotCandidates& slots, absl::Duration min_idle) {
  using Kind = SlotChoice::Kind;
  if (slots.own.has_value()) {
    return slots.own->leaving ? SlotChoice{Kind::kWait, -1}
                              : SlotChoice{Kind::kResident, slots.own->slot};
  }
  if (slots.free.has_value()) return {Kind::kFree, *slots.free};
  if (slots.idle_longest.has_value() && slots.idle_longest->idle >= min_idle) {
    return {Kind::kEvict, slots.idle_longest->slot};
  }
  if (slots.parked.has_value() && slots.parked->idle >= min_idle) {
    return {Kind::kYield, slots.parked->slot};
  }
  return {slots.running ? Kind::kWait : Kind::kRefuse, -1};
}

}  // namespace txl
