#pragma once

// Which of several flows is served next, so that each gets service by its
// weight: start-time fair queueing (Goyal, Vin, Cheng 1997). A flow's start is
// the service that it has had, by weight; who has the least goes first. A flow
// that wanted nothing for a while begins where the others are: it gets no
// credit for it.
//
// With costs of at most C, flows f and g that stand in line throughout differ
// by
//   |got_f / weight_f - got_g / weight_g| <= C / weight_f + C / weight_g
// and nobody starves: a flow that waits begins at most C / weight_f behind the
// one that is served, so that each of n others gets C weight_g / weight_f + C
// before it at most, in all
//   C (sum of weights / weight_f + n)

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace txl {

// Not thread-safe. A call costs O(log flows).
class FairOrder {
 public:
  // By start, then by name.
  using Line = std::set<std::pair<double, std::string>>;

  // The flow wants service, and stands in line until Leave. One in line only
  // takes its new weight, > 0.
  void Join(const std::string& flow, double weight);
  void Leave(const std::string& flow);
  // Nobody is in line, and what was is forgotten.
  void Clear();

  // The flows in line, the next one first.
  const Line& line() const { return line_; }

  // The flow, in line or not, got service of this cost, >= 0; or gives back
  // what it got and did not use, and comes sooner by that.
  void Charge(const std::string& flow, double cost);
  void Refund(const std::string& flow, double cost);

  // Flows that are remembered: those in line, and those that had more than the
  // others when they left.
  size_t size() const { return flows_.size(); }

 private:
  struct Flow {
    double weight = 1;
    double start = 0;
    bool in_line = false;
  };

  // Moves the flow to another start.
  void Restart(const std::string& name, Flow& flow, double start);
  // Forgets flows out of line that would begin where the others are.
  void ForgetPast();

  std::map<std::string, Flow> flows_;
  Line line_;
  Line gone_;                // the flows out of line
  double virtual_time_ = 0;  // the start of what was served last
};

}  // namespace txl
