#include "client/fleet/flags.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <string>

namespace txl::fleet {
namespace {

using testing::HasSubstr;

absl::StatusOr<FleetOptions> Read(const std::string& command_line) {
  CLI::App program;
  Flags flags;
  AddFlags(program, &flags);
  program.parse(command_line);
  return MakeFleet(flags);
}

TEST(Flags, AreThePlanWithoutAny) {
  const absl::StatusOr<FleetOptions> fleet = Read("");
  ASSERT_TRUE(fleet.ok()) << fleet.status();
  EXPECT_EQ(fleet->cells, 20);
  EXPECT_EQ(fleet->sample, 20);
  EXPECT_EQ(fleet->cell.servers, 50);
  EXPECT_EQ(fleet->cell.mix.sessions, 5'000'000);
  EXPECT_DOUBLE_EQ(fleet->cell.mix.conversations_per_second, 17.5);
}

TEST(Flags, AreSharedOutOverTheCells) {
  const absl::StatusOr<FleetOptions> fleet = Read(
      "--servers 12 --cells 3 --sessions 300 --conversations 6 --warm 90 "
      "--sample 2");
  ASSERT_TRUE(fleet.ok());
  EXPECT_EQ(fleet->cell.servers, 4);
  EXPECT_EQ(fleet->cell.mix.sessions, 100);
  EXPECT_DOUBLE_EQ(fleet->cell.mix.conversations_per_second, 2);
  EXPECT_EQ(fleet->cell.warm_conversations, 30);
  EXPECT_EQ(fleet->sample, 2);
}

TEST(Flags, CanStandInAFile) {
  const std::string path = testing::TempDir() + "/fleet.toml";
  std::ofstream(path) << "# a server\nstep = [\"1:0.5\", \"2:0.75\"]\n"
                      << "slots = 7\nshared-images = true\n"
                      << "answer-tokens = \"uniform:1:9\"\n"
                      << "fail = [\"60:2:120\", \"70:1:5:silent\"]\n";
  const absl::StatusOr<FleetOptions> fleet =
      Read("--config " + path + " --slots 8");
  ASSERT_TRUE(fleet.ok()) << fleet.status();
  EXPECT_DOUBLE_EQ(fleet->cell.server.device.steps.Seconds(2), 0.75);
  EXPECT_EQ(fleet->cell.server.slots, 8);
  EXPECT_TRUE(fleet->cell.images.on);
  EXPECT_EQ(fleet->cell.mix.answer_tokens.text(), "uniform:1:9");
  const std::vector<Failure>& failures = fleet->cell.recovery.failures;
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_EQ(failures[0].servers, 2);
  EXPECT_EQ(failures[0].for_seconds, 120);
  EXPECT_FALSE(failures[0].silent);
  EXPECT_EQ(failures[1].at_seconds, 70);
  EXPECT_TRUE(failures[1].silent);
}

TEST(Flags, OfAFileThatAreNoneAreRefused) {
  const std::string path = testing::TempDir() + "/wrong.toml";
  std::ofstream(path) << "slotz = 7\n";
  EXPECT_THROW(Read("--config " + path).IgnoreError(), CLI::ParseError);
}

TEST(Flags, ThatAreWrongAreNamed) {
  for (const auto& [line, name] :
       std::vector<std::pair<std::string, std::string>>{
           {"--servers 10 --cells 3", "--cells"},
           {"--step 1", "--step"},
           {"--turns many", "--turns"},
           {"--think -1", "--think"},
           {"--prompt-tokens x", "--prompt-tokens"},
           {"--answer-tokens x", "--answer-tokens"},
           {"--session-tokens x", "--session-tokens"},
           {"--fail 1:2", "--fail"},
           {"--fail 1:0:3", "--fail"},
           {"--fail 1:2:3:loud", "--fail"}}) {
    const absl::StatusOr<FleetOptions> fleet = Read(line);
    ASSERT_FALSE(fleet.ok()) << line;
    EXPECT_THAT(std::string(fleet.status().message()), HasSubstr(name));
  }
}

}  // namespace
}  // namespace txl::fleet
