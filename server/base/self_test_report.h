#pragma once

// What the self-test at load (server/engine/sound_step.h) said.

#include <string>

namespace txl {

enum class SelfTestResult {
  kNotRun,    // was not requested: --step native or torch
  kPassed,    // the step that was meant serves
  kFellBack,  // it was refused, and a safer one serves
};

struct SelfTestReport {
  SelfTestResult result = SelfTestResult::kNotRun;
  std::string step;       // kernels of the first step that was built
  std::string objection;  // kFellBack: what differed, and where
  double seconds = 0;     // all trials together
};

// "not_run", "passed", "fell_back".
inline const char* NameOf(SelfTestResult result) {
  switch (result) {
    case SelfTestResult::kNotRun:
      return "not_run";
    case SelfTestResult::kPassed:
      return "passed";
    case SelfTestResult::kFellBack:
      return "fell_back";
  }
  return "";
}

}  // namespace txl
