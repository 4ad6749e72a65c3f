#include "client/bench/result/report_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/client/bench/mixed_load.h"

namespace txl::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(TheText, ShowsMillisecondsAndWhatWentWrong) {
  LoadResult load = MixedLoad();
  load.result.turns[0].problem = "Started twice";
  load.options.run.workload.prompts = {{"a", {}, 1}, {"b", {}, 4}};
  for (const int64_t place : {1, 2}) {
    TurnRecord& turn = load.result.turns[place];
    turn.conversation = 3;
    turn.status = "INVALID_ARGUMENT (OVER_LIMIT)";
    turn.error = absl::StrCat("text: is long, ", place);
  }
  load.server = {.verdict = ServerCheck::Verdict::kUnequal,
                 .server_turns = 2,
                 .own_turns = 2,
                 .server_tokens = 9,
                 .own_tokens = 8};
  const std::string text = ToText(MakeReport(load, {.end_to_end = 1}));
  for (const char* part :
       {"closed loop: 8 streams on 3 connections", "4.0 tokens/s", "500.00",
        "MALFORMED STREAM: Started twice",
        "(OVER_LIMIT)            2\n"
        "    first: prompt of line 4: text: is long, 1\n",
        "goodput: 1.00 requests/s, 50.00 % of 4",
        "COUNTERS DIFFER: 9 tokens delivered, 8 received",
        "250.0 us per token"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(TheText, OfAnOpenLoopShowsWhatIsBeyondCapacity) {
  LoadResult load = MixedLoad();
  load.options.run.mode = Mode::kOpen;
  load.options.run.rate.rate = 2;
  const std::string text = ToText(MakeReport(load, {}));
  EXPECT_NE(text.find("open loop: 2 requests/s, Poisson"), std::string::npos);
  EXPECT_NE(text.find("BEYOND CAPACITY: 25.0 %"), std::string::npos) << text;
  EXPECT_NE(text.find("from send"), std::string::npos);
}

TEST(TheText, SaysWhatTheServersCountersMean) {
  LoadResult load = MixedLoad();
  const auto text_of = [&](ServerCheck::Verdict verdict) {
    load.server = {.verdict = verdict,
                   .server_turns = 5,
                   .own_turns = 2,
                   .server_tokens = 9,
                   .own_tokens = 8};
    return ToText(MakeReport(load, {}));
  };
  EXPECT_THAT(text_of(ServerCheck::Verdict::kEqual),
              HasSubstr("the same 8 tokens"));
  EXPECT_THAT(text_of(ServerCheck::Verdict::kConsistent),
              HasSubstr("9 tokens, 8 received (turns were cut short)"));
  EXPECT_THAT(text_of(ServerCheck::Verdict::kNotComparable),
              HasSubstr("not comparable, 5 turns ended there and 2 here"));
}

TEST(TheText, ShowsTheLongestStallsWithTheirShare) {
  Report report = MakeReport(MixedLoad(), {});
  report.stalls.assign(
      9, {.start = kNanosPerSecond, .length = kNanosPerSecond / 2, .hit = 1});
  const std::string text = ToText(report);
  size_t shown = 0;
  for (size_t at = text.find("STALL: no token for 0.50 s, 1.00 s after");
       at != std::string::npos; at = text.find("STALL:", at + 1)) {
    ++shown;
  }
  EXPECT_EQ(shown, 5u);
  EXPECT_THAT(text, HasSubstr("it hit 1 of 4 requests (25.0 %)"));
}

TEST(TheText, WarnsWhenTheTesterItselfWasLate) {
  LoadResult load = MixedLoad();
  EXPECT_THAT(ToText(MakeReport(load, {})), Not(HasSubstr("CLIENT-BOUND")));
  load.result.turns[0].sent += kNanosPerSecond / 10;
  EXPECT_THAT(ToText(MakeReport(load, {})), HasSubstr("CLIENT-BOUND"));
}

TEST(TheText, TellsHowManyPromptsComeFromAFile) {
  LoadResult load = MixedLoad();
  EXPECT_THAT(ToText(MakeReport(load, {})), HasSubstr("prompts of 32 tokens"));
  load.options.run.workload.prompts.resize(3);
  EXPECT_THAT(ToText(MakeReport(load, {})), HasSubstr("3 prompts"));
}

TEST(TheText, OfNoTurnsDividesByNothing) {
  const std::string text = ToText(MakeReport(LoadResult(), {.end_to_end = 1}));
  EXPECT_THAT(text, HasSubstr("goodput: 0.00 requests/s"));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  EXPECT_THAT(text, Not(HasSubstr("inf")));
}

Report AtRate(double rate) {
  LoadResult load = MixedLoad();
  load.options.run.mode = Mode::kOpen;
  load.options.run.rate.rate = rate;
  return MakeReport(load, {.end_to_end = 1});
}

TEST(TheTextOfASweep, HasALineForEachRateAndTheCapacity) {
  Sweep sweep;
  sweep.runs = {AtRate(2), AtRate(4)};
  sweep.capacity = Capacity{.good = 2, .bad = 4, .exact = false};
  const std::string text = ToText(sweep);
  // 4 tokens/s; medians and highest values of MixedLoad's turns.
  EXPECT_THAT(text, HasSubstr("     2.000        4.0"));
  EXPECT_THAT(text, HasSubstr("     4.000        4.0"));
  EXPECT_THAT(text, HasSubstr("50.00  beyond capacity"));
  EXPECT_THAT(text, HasSubstr("capacity: 2.000 requests/s (4.000 is too "
                              "much), not narrowed down further"));
  sweep.capacity->exact = true;
  EXPECT_THAT(ToText(sweep), Not(HasSubstr("not narrowed")));
}

TEST(TheTextOfASweep, SaysWhenNoRateWasTooMuchOrNoneGood) {
  Sweep sweep = {.runs = {AtRate(2)}, .capacity = Capacity{.good = 2}};
  EXPECT_THAT(ToText(sweep),
              HasSubstr("capacity: 2.000 requests/s or more: no rate was too "
                        "much\n"));
  sweep.capacity = Capacity{.good = 0, .bad = 2};
  EXPECT_THAT(ToText(sweep),
              HasSubstr("capacity: none found: 2.000 requests/s is too "
                        "much\n"));
}

TEST(ProgressLines, TellRatesSinceTheLastOne) {
  EXPECT_EQ(
      ProgressLine(
          {.seconds = 1, .sent = 10, .ended = 4, .tokens = 100},
          {.seconds = 3, .sent = 30, .ended = 14, .failed = 2, .tokens = 500}),
      "   3 s: 200.0 tokens/s, 10.0 requests/s sent, 5.0 ended, 16 "
      "running, 2 failed\n");
}

}  // namespace
}  // namespace txl::bench
