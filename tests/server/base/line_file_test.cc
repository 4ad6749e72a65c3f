// Lines in a file that is renamed, full, missing or never read.

#include "server/base/line_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "server/base/log.h"
#include "server/base/text_file.h"

namespace txl {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class LineFileTest : public testing::Test {
 protected:
  LineFileTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~LineFileTest() override { std::filesystem::remove_all(folder_); }
  static std::unique_ptr<LineFile> Open(const std::string& path) {
    auto file = LineFile::Open({"audit-log", path, true});
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *std::move(file) : nullptr;
  }
  // Waits until another thread has made it so; false after ten seconds.
  template <typename Condition>
  static bool Eventually(Condition condition) {
    const absl::Time end = absl::Now() + absl::Seconds(10);
    while (!condition()) {
      if (absl::Now() > end) return false;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return true;
  }
  // The log's lines of an event.
  std::vector<nlohmann::json> Said(const std::string& event) const {
    std::vector<nlohmann::json> said;
    for (const std::string& line : log_.lines()) {
      const auto json = nlohmann::json::parse(line);
      if (json["event"] == event) said.push_back(json["fields"]);
    }
    return said;
  }

  const std::string folder_ =
      testing::TempDir() + "/line_file_" + std::to_string(getpid());
  const std::string path_ = folder_ + "/lines";
  LogCapture log_;
};

TEST_F(LineFileTest, AppendsToWhatIsThere) {
  Open(path_)->Add("first");
  Open(path_)->Add("second");
  EXPECT_EQ(ReadTextFile(path_), "first\nsecond\n");
  EXPECT_THAT(log_.lines(), IsEmpty());
}

TEST_F(LineFileTest, ANewFileIsItsOwnersAlone) {
  Open(path_);
  struct stat found = {};
  ASSERT_EQ(stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
}

TEST_F(LineFileTest, AnErrorNamesSettingAndFile) {
  const std::string missing = folder_ + "/no/such/folder";
  const auto file = LineFile::Open({"trace-file", missing});
  EXPECT_THAT(std::string(file.status().message()),
              AllOf(HasSubstr("--trace-file: "), HasSubstr(missing)));
  EXPECT_THAT(
      std::string(LineFile::Open({"audit-log", folder_}).status().message()),
      HasSubstr(folder_));
}

TEST_F(LineFileTest, APipeThatNobodyReadsIsAnErrorAndNoWait) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(LineFile::Open({"audit-log", path_}).ok());
}

TEST_F(LineFileTest, AfterReopenLinesGoToTheNewFile) {
  const auto file = Open(path_);
  file->Add("old");
  ASSERT_TRUE(Eventually([&] { return ReadTextFile(path_) == "old\n"; }));
  std::filesystem::rename(path_, path_ + ".1");
  file->Add("renamed");
  ASSERT_TRUE(Eventually(
      [&] { return ReadTextFile(path_ + ".1") == "old\nrenamed\n"; }));
  EXPECT_TRUE(file->Reopen().ok());
  EXPECT_TRUE(std::filesystem::exists(path_)) << "without a line, too";
  file->Add("new");
  EXPECT_TRUE(Eventually([&] { return ReadTextFile(path_) == "new\n"; }));
  EXPECT_EQ(ReadTextFile(path_ + ".1"), "old\nrenamed\n");
}

TEST_F(LineFileTest, WhereItCannotBeReopenedTheOldFileStays) {
  const auto file = Open(path_);
  std::filesystem::rename(folder_, folder_ + "_moved");
  EXPECT_FALSE(file->Reopen().ok());
  file->Add("still here");
  EXPECT_TRUE(Eventually([&] {
    return ReadTextFile(folder_ + "_moved/lines") == "still here\n";
  }));
  ASSERT_THAT(Said("file_kept"), SizeIs(1));
  EXPECT_EQ(Said("file_kept")[0]["file"], path_);
  EXPECT_EQ(file->lost(), 0);
  std::filesystem::remove_all(folder_ + "_moved");
}

TEST_F(LineFileTest, AFullDiskLosesLinesAndSaysSoOnce) {
  const auto file = Open("/dev/full");
  for (int i = 1; i <= 3; ++i) {
    file->Add("lost");
    ASSERT_TRUE(Eventually([&] { return file->lost() == i; }));
  }
  ASSERT_TRUE(Eventually([&] { return !Said("lines_lost").empty(); }));
  ASSERT_THAT(Said("lines_lost"), SizeIs(1));
  EXPECT_EQ(Said("lines_lost")[0],
            nlohmann::json({{"setting", "audit-log"},
                            {"file", "/dev/full"},
                            {"error", "No space left on device"}}));
}

TEST_F(LineFileTest, WhenItFlowsAgainLogAndFileSayWhatIsMissing) {
  std::filesystem::create_symlink("/dev/full", path_);
  const auto file = Open(path_);
  file->Add("lost");
  ASSERT_TRUE(Eventually([&] { return file->lost() == 1; }));
  std::filesystem::remove(path_);
  EXPECT_TRUE(file->Reopen().ok());
  file->Add("kept");
  ASSERT_TRUE(Eventually([&] { return !Said("lines_flow").empty(); }));
  EXPECT_EQ(Said("lines_flow")[0]["lines"], 1);
  ASSERT_TRUE(Eventually(
      [&] { return absl::StrContains(ReadTextFile(path_), "lines_flow"); }));
  const std::string text = ReadTextFile(path_);
  EXPECT_THAT(text, testing::StartsWith("kept\n"));
  const auto said = nlohmann::json::parse(text.substr(5));
  EXPECT_EQ(said["event"], "lines_flow");
  EXPECT_EQ(said["fields"]["lines"], 1);
}

TEST_F(LineFileTest, AFileOfAForeignFormatSaysNothingOfItself) {
  std::filesystem::create_symlink("/dev/full", path_);
  auto file = LineFile::Open({"trace-file", path_});
  ASSERT_TRUE(file.ok());
  (*file)->Add("lost");
  ASSERT_TRUE(Eventually([&] { return (*file)->lost() == 1; }));
  std::filesystem::remove(path_);
  EXPECT_TRUE((*file)->Reopen().ok());
  (*file)->Add("kept");
  ASSERT_TRUE(Eventually([&] { return !Said("lines_flow").empty(); }));
  file->reset();
  EXPECT_EQ(ReadTextFile(path_), "kept\n");
}

TEST_F(LineFileTest, AnEventIsALineOfJsonAlways) {
  SetLogFormat(LogFormat::kText);
  const auto file = Open(path_);
  LogAndAudit(file.get(), LogSeverity::kWarning, "done", {{"lines", 2}});
  SetLogFormat(LogFormat::kJson);
  ASSERT_TRUE(Eventually([&] { return !ReadTextFile(path_).empty(); }));
  const auto line = nlohmann::json::parse(ReadTextFile(path_));
  EXPECT_EQ(line["event"], "done");
  EXPECT_EQ(line["severity"], "WARNING");
  EXPECT_EQ(line["fields"], nlohmann::json({{"lines", 2}}));
  ASSERT_THAT(log_.lines(), SizeIs(1));
  EXPECT_THAT(log_.lines()[0], HasSubstr("done lines=2"));
}

TEST_F(LineFileTest, WithoutAFileAnEventIsTheLogsAlone) {
  LogAndAudit(nullptr, LogSeverity::kInfo, "done", {});
  EXPECT_THAT(log_.lines(), SizeIs(1));
}

}  // namespace
}  // namespace txl
