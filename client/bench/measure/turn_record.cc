#include "client/bench/measure/turn_record.h"

namespace txl::bench {

const char* OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return "ok";
    case Outcome::kCancelled:
      return "cancelled";
    case Outcome::kRejected:
      return "rejected";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kIncomplete:
      return "incomplete";
    case Outcome::kNotSent:
      return "not_sent";
  }
  return "";
}

}  // namespace txl::bench
