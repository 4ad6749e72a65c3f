#include "client/bench/result/result_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "client/bench/result/report_json.h"
#include "tests/client/bench/mixed_load.h"

namespace txl::bench {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

std::string InTemp(const std::string& name) {
  return (std::filesystem::path(::testing::TempDir()) / name).string();
}

Json RunJson() { return ToJson(MakeReport(MixedLoad(), {})); }

Json SweepOf(Json runs, Json main_run) {
  return {{"schema", kSchema},
          {"kind", "sweep"},
          {"main_run", std::move(main_run)},
          {"runs", std::move(runs)}};
}

TEST(AResultFile, IsReadAsItWasWritten) {
  const std::string path = InTemp("result_file_test.json");
  ASSERT_TRUE(WriteFile(path, ToLine(RunJson())).ok());
  const auto read = ReadResult(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, RunJson());
  std::filesystem::remove(path);
}

TEST(AResultFile, ThatCannotBeReadIsNamed) {
  const std::string path = InTemp("no_such_folder/result.json");
  const absl::Status missing = ReadResult(path).status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_THAT(missing.message(), HasSubstr(path));
  EXPECT_EQ(ReadResult("/etc").status().message(), "/etc: is a directory");
  for (const absl::Status& status :
       {WriteFile(path, "{}"), CheckWritable(path)}) {
    EXPECT_THAT(status.message(), HasSubstr(path + ": cannot be written"));
  }
}

TEST(AResultFile, StaysWhatItWasWhereTheDiskIsFull) {
  const std::string path = InTemp("result_file_test_full.json");
  ASSERT_TRUE(WriteFile(path, "{}").ok());
  // A limit of files is what a test can set of a disk.
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit;
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small = {4096, limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const absl::Status status = WriteFile(path, std::string(8192, '1'));
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, before);
  EXPECT_THAT(status.message(), HasSubstr(path + ": cannot be written"));
  EXPECT_EQ(ReadResult(path)->dump(), "{}");
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
  std::filesystem::remove(path);
}

TEST(AResultFile, IsCheckedWithoutAChange) {
  const std::string path = InTemp("result_file_test_check.json");
  EXPECT_TRUE(CheckWritable(path).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(WriteFile(path, "{}").ok());
  EXPECT_TRUE(CheckWritable(path).ok());
  EXPECT_TRUE(ReadResult(path).ok());
  std::filesystem::remove(path);
}

TEST(AResultFile, IsCheckedThroughALinkAndNotInAPipe) {
  const std::string link = InTemp("result_file_test_link");
  const std::string pipe = InTemp("result_file_test_pipe");
  for (const std::string& path : {link, pipe}) std::filesystem::remove(path);
  std::filesystem::create_symlink("result_file_test_none", link);
  EXPECT_TRUE(CheckWritable(link).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_FALSE(std::filesystem::exists(link));
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(CheckWritable(pipe).ok());  // without a wait for a reader
  for (const std::string& path : {link, pipe}) std::filesystem::remove(path);
}

TEST(AResultFile, ThatIsNoJsonIsAnError) {
  const std::string path = InTemp("result_file_test_broken.json");
  for (const char* content : {"", "{", "rate: 3"}) {
    ASSERT_TRUE(WriteFile(path, content).ok());
    const absl::Status status = ReadResult(path).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("is not JSON"));
  }
  std::filesystem::remove(path);
}

TEST(TheMainRun, OfARunIsItself) {
  const auto main = MainRunOf(RunJson(), "a.json");
  ASSERT_TRUE(main.ok()) << main.status();
  EXPECT_EQ(*main, RunJson());
}

TEST(TheMainRun, OfASweepIsTheOneThatItNames) {
  Json second = RunJson();
  second["model"] = "second";
  const auto main = MainRunOf(SweepOf({RunJson(), second}, 1u), "a.json");
  ASSERT_TRUE(main.ok()) << main.status();
  EXPECT_EQ((*main)["model"], "second");
}

TEST(TheMainRun, IsMissingFromEverythingElse) {
  Json other_schema = RunJson();
  other_schema["schema"] = kSchema + 1;
  Json no_rate = RunJson();
  no_rate.erase("tokens_per_second");
  Json no_start = RunJson();
  no_start["series"][0]["start"] = "0";
  const struct {
    Json result;
    const char* why;
  } cases[] = {
      {Json::array(), "is not a result of txl bench"},
      {Json::object(), "is not a result of txl bench"},
      {other_schema, "has another schema"},
      {WithoutDetails(RunJson()), "has no run with histograms"},
      {SweepOf({RunJson()}, 1u), "has no run with histograms"},
      {SweepOf({RunJson()}, -1), "has no run with histograms"},
      {SweepOf({RunJson()}, "0"), "has no run with histograms"},
      {SweepOf({WithoutDetails(RunJson())}, 0u), "has no run with histograms"},
      {SweepOf(Json::array(), 0u), "has no run with histograms"},
      {SweepOf(Json::object({{"0", RunJson()}}), 0u),
       "has no run with histograms"},
      {{{"schema", kSchema}, {"kind", 5}}, "has no run with histograms"},
      {no_rate, "has nothing usable at /tokens_per_second"},
      {no_start, "has nothing usable at /series/0/start"},
  };
  for (const auto& c : cases) {
    const absl::Status status = MainRunOf(c.result, "a.json").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("a.json: "));
    EXPECT_THAT(status.message(), HasSubstr(c.why));
  }
}

}  // namespace
}  // namespace txl::bench
