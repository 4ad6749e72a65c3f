// Damaged and malicious checkpoints of tests/hostile through whole conversions:
// refused in one line, nothing written, nothing executed; the well-formed ones
// they derive from convert.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/model/convert/golden_conversion.h"

namespace txl {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

std::string HostilePath(const std::string& name) {
  const char* data = std::getenv("TXL_TEST_DATA");
  return std::string(data == nullptr ? "tests" : data) + "/hostile/" + name;
}

nlohmann::json HostileFiles() {
  return nlohmann::json::parse(FileText(HostilePath("hostile.json")))["files"];
}

void ExpectRefusedOrConvertedWhole(const nlohmann::json& file) {
  const std::string path = file["path"];
  const std::string name = fs::path(path).filename().string();
  const std::string folder = FreshFolder("hostile_" + name);
  const std::string spec =
      file["kind"] == "torch" ? HostilePath("benign_kimi/model.json") : "";
  const auto report = ConvertTo(folder, HostilePath(path), spec);
  if (file["expect"] == "accept") {
    EXPECT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(fs::exists(folder + "/model/model.safetensors"));
    return;
  }
  ASSERT_FALSE(report.ok()) << file["what"];
  EXPECT_THAT(std::string(report.status().message()), Not(HasSubstr("\n")));
  EXPECT_THAT(std::string(report.status().message()), HasSubstr(name));
  EXPECT_TRUE(fs::is_empty(folder)) << "something was left behind";
}

TEST(HostileConversion, EveryFileIsRefusedOrConvertedWhole) {
  const nlohmann::json files = HostileFiles();
  ASSERT_EQ(files.size(), 40u);
  for (const nlohmann::json& file : files) {
    SCOPED_TRACE(file["path"].get<std::string>());
    ExpectRefusedOrConvertedWhole(file);
  }
  EXPECT_FALSE(fs::exists("HOSTILE_EXECUTED"));
}

}  // namespace
}  // namespace txl
