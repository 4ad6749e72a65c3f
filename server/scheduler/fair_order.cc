#include "server/scheduler/fair_order.h"

#include <algorithm>

namespace txl {

void FairOrder::Join(const std::string& flow, double weight) {
  ForgetPast();
  Flow& joined = flows_[flow];
  joined.weight = weight;
  if (joined.in_line) return;
  gone_.erase({joined.start, flow});
  joined.in_line = true;
  joined.start = std::max(joined.start, virtual_time_);
  line_.emplace(joined.start, flow);
}

void FairOrder::Leave(const std::string& flow) {
  const auto found = flows_.find(flow);
  if (found == flows_.end() || !found->second.in_line) return;
  line_.erase({found->second.start, flow});
  gone_.emplace(found->second.start, flow);
  found->second.in_line = false;
}

void FairOrder::Clear() {
  flows_.clear();
  line_.clear();
  gone_.clear();
  virtual_time_ = 0;
}

void FairOrder::Charge(const std::string& flow, double cost) {
  const auto found = flows_.find(flow);
  if (found == flows_.end()) return;
  Flow& charged = found->second;
  virtual_time_ = std::max(virtual_time_, charged.start);
  Restart(flow, charged, charged.start + cost / charged.weight);
}

void FairOrder::Refund(const std::string& flow, double cost) {
  const auto found = flows_.find(flow);
  if (found == flows_.end()) return;
  Flow& refunded = found->second;
  Restart(flow, refunded, refunded.start - cost / refunded.weight);
}

void FairOrder::Restart(const std::string& name, Flow& flow, double start) {
  Line& line = flow.in_line ? line_ : gone_;
  line.erase({flow.start, name});
  flow.start = start;
  line.emplace(start, name);
}

void FairOrder::ForgetPast() {
  while (!gone_.empty() && gone_.begin()->first <= virtual_time_) {
    flows_.erase(gone_.begin()->second);
    gone_.erase(gone_.begin());
  }
}

}  // namespace txl
