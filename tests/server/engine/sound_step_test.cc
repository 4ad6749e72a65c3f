#include "server/engine/sound_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "server/base/log.h"
#include "tests/model/torch/golden_case.h"
#include "tests/server/engine/tried_step.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Attempts that build the same small step under names, and a test that is told
// what to say of each.
class SoundStepTest : public testing::Test {
 protected:
  StepAttempt Attempt(const std::string& name, bool tested = true) {
    return {[this, name]() -> absl::StatusOr<ServingStep> {
              built_.push_back(name);
              ServingStep serving;
              serving.step = MakeTriedStep(golden_.config, golden_.weights,
                                           TriedFormats().front());
              serving.facts.device = name;
              return serving;
            },
            tested};
  }
  absl::StatusOr<ServingStep> Choose(const std::vector<StepAttempt>& attempts) {
    return FirstSoundStep(
        attempts,
        [this](const ServingStep& serving) {
          const auto verdict = verdicts_.find(serving.facts.device);
          return verdict == verdicts_.end() ? absl::OkStatus()
                                            : verdict->second;
        },
        &report_);
  }

  const GoldenCase golden_ = LoadGoldenCase("kimi-char", at::kFloat);
  std::map<std::string, absl::Status> verdicts_;
  std::vector<std::string> built_;
  SelfTestReport report_;
  LogCapture log_;
};

TEST_F(SoundStepTest, TheFirstOneServesWhereNothingIsWrong) {
  const auto sound = Choose({Attempt("a"), Attempt("b")});
  ASSERT_TRUE(sound.ok()) << sound.status();
  EXPECT_EQ(sound->facts.device, "a");
  EXPECT_EQ(report_.result, SelfTestResult::kPassed);
  EXPECT_EQ(report_.step, sound->step->identity().kernel);
  EXPECT_THAT(built_, ElementsAre("a"));
  EXPECT_THAT(log_.lines(),
              ElementsAre(AllOf(HasSubstr("INFO"), HasSubstr("self_test"))));
}

TEST_F(SoundStepTest, AnObjectionIsToldAndTheNextOneIsTried) {
  verdicts_["a"] = absl::InternalError("session 3: rows differ");
  const auto sound = Choose({Attempt("a"), Attempt("b"), Attempt("c")});
  ASSERT_TRUE(sound.ok()) << sound.status();
  EXPECT_EQ(sound->facts.device, "b");
  EXPECT_EQ(report_.result, SelfTestResult::kFellBack);
  EXPECT_EQ(report_.objection, "session 3: rows differ");
  EXPECT_THAT(built_, ElementsAre("a", "b"));
  EXPECT_THAT(log_.lines(),
              ElementsAre(AllOf(HasSubstr("ERROR"), HasSubstr("self_test"),
                                HasSubstr("session 3: rows differ")),
                          HasSubstr("INFO")));
}

TEST_F(SoundStepTest, TheLastResortIsNotTested) {
  verdicts_["a"] = verdicts_["b"] = absl::InternalError("wrong");
  const auto sound = Choose({Attempt("a"), Attempt("b", /*tested=*/false)});
  ASSERT_TRUE(sound.ok()) << sound.status();
  EXPECT_EQ(sound->facts.device, "b");
  EXPECT_EQ(report_.result, SelfTestResult::kFellBack);
}

TEST_F(SoundStepTest, WhoAsksForNoTestGetsNone) {
  verdicts_["a"] = absl::InternalError("wrong");
  const auto sound = Choose({Attempt("a", /*tested=*/false)});
  ASSERT_TRUE(sound.ok()) << sound.status();
  EXPECT_EQ(report_.result, SelfTestResult::kNotRun);
}

TEST_F(SoundStepTest, WithoutASoundStepNothingServes) {
  verdicts_["a"] = absl::InternalError("wrong here");
  verdicts_["b"] = absl::InternalError("wrong there");
  const absl::Status status = Choose({Attempt("a"), Attempt("b")}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("wrong there"));
  // The report says so too.
  EXPECT_EQ(report_.result, SelfTestResult::kFellBack);
  EXPECT_EQ(report_.objection, "wrong there");
  EXPECT_GT(report_.seconds, 0);
  EXPECT_NE(report_.step, "");
}

// Want of memory says nothing about the step.
TEST_F(SoundStepTest, AnErrorThatIsNoVerdictEndsTheSearch) {
  verdicts_["a"] = absl::ResourceExhaustedError("no room");
  EXPECT_EQ(Choose({Attempt("a"), Attempt("b")}).status().code(),
            absl::StatusCode::kResourceExhausted);
  StepAttempt broken;
  broken.build = []() -> absl::StatusOr<ServingStep> {
    return absl::InvalidArgumentError("form");
  };
  EXPECT_EQ(Choose({broken, Attempt("b")}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(built_, ElementsAre("a"));
}

TEST(NextVectorTargetsTest, AreThePlainerOnes) {
  const std::vector<std::string> all = {"AVX3", "AVX2", "SSE4", "SSE2"};
  EXPECT_THAT(NextVectorTargets("AVX3", all),
              ElementsAre("AVX2", "SSE4", "SSE2"));
  EXPECT_THAT(NextVectorTargets("SSE4", all), ElementsAre("SSE2"));
  EXPECT_THAT(NextVectorTargets("SSE2", all), IsEmpty());
  EXPECT_THAT(NextVectorTargets("NEON", all), IsEmpty());
}

}  // namespace
}  // namespace txl
