#include "server/format_flags.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "server/flags.h"

namespace txl {
namespace {

StepRunnerOptions ParseFormats(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--model", "m"});
  const auto parsed = ParseFlags(arguments);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? parsed->flags.runner : StepRunnerOptions();
}

TEST(FormatFlags, AreFloat32UnlessNamed) {
  const StepRunnerOptions plain = ParseFormats({});
  EXPECT_EQ(plain.weights, "f32");
  EXPECT_EQ(plain.products, "float");
  EXPECT_EQ(ParseFormats({"--derived=int8"}).derived, "int8");
}

TEST(FormatFlags, AQualitySetsThoseThatWereNotGiven) {
  const StepRunnerOptions fast = ParseFormats({"--quality", "fast"});
  EXPECT_EQ(fast.weights, "int8");
  EXPECT_EQ(fast.products, "int8");
  EXPECT_EQ(fast.memory, "int8");
  EXPECT_EQ(fast.derived, "int8");
  EXPECT_EQ(ParseFormats({"--quality=fast", "--memory=f32"}).memory, "f32");
  EXPECT_FALSE(ParseFlags({"--model", "m", "--quality=best"}).ok());
}

// From wherever a setting comes, it goes before the preset.
TEST(FormatFlags, AFilesSettingsGoBeforeTheQuality) {
  const std::string path = testing::TempDir() + "/format_flags.toml";
  std::ofstream(path) << "derived = 'bf16'\nquality = 'balanced'\n";
  const StepRunnerOptions balanced = ParseFormats({"--config", path});
  EXPECT_EQ(balanced.weights, "int8");
  EXPECT_EQ(balanced.products, "float");
  EXPECT_EQ(balanced.derived, "bf16");
}

}  // namespace
}  // namespace txl
