#include "server/record_files.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "server/base/log.h"
#include "server/base/text_file.h"

namespace txl {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class RecordFilesTest : public testing::Test {
 protected:
  RecordFilesTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    flags_.audit_log = folder_ + "/audit";
    flags_.trace_file = folder_ + "/spans";
    flags_.trace_rate = 0.5;
  }
  ~RecordFilesTest() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ =
      testing::TempDir() + "/record_files_" + std::to_string(getpid());
  RecordFlags flags_;
};

TEST_F(RecordFilesTest, WithoutFlagsThereAreNone) {
  const auto files = RecordFiles::Open({});
  ASSERT_TRUE(files.ok());
  ServiceContext context;
  (*files)->SetIn(&context);
  EXPECT_EQ(context.audit, nullptr);
  EXPECT_EQ(context.spans, nullptr);
  EXPECT_EQ(context.trace_rate, 1);
  EXPECT_THAT((*files)->Reopen(), testing::IsEmpty());
}

TEST_F(RecordFilesTest, CallsWriteToThoseOfTheFlags) {
  auto files = RecordFiles::Open(flags_);
  ASSERT_TRUE(files.ok()) << files.status();
  ServiceContext context;
  (*files)->SetIn(&context);
  EXPECT_EQ(context.audit, (*files)->audit());
  EXPECT_EQ(context.trace_rate, 0.5);
  context.audit->Add("a line");
  context.spans->Add("a span");
  files->reset();
  EXPECT_EQ(ReadTextFile(flags_.audit_log), "a line\n");
  EXPECT_EQ(ReadTextFile(flags_.trace_file), "a span\n");
}

TEST_F(RecordFilesTest, BothAreOpenedAnew) {
  auto files = RecordFiles::Open(flags_);
  ASSERT_TRUE(files.ok());
  for (const std::string& path : {flags_.audit_log, flags_.trace_file}) {
    std::filesystem::rename(path, path + ".1");
  }
  EXPECT_EQ((*files)->Reopen().size(), 2u);
  EXPECT_TRUE(std::filesystem::exists(flags_.audit_log));
  EXPECT_TRUE(std::filesystem::exists(flags_.trace_file));
}

TEST_F(RecordFilesTest, AnErrorNamesFlagAndFile) {
  flags_.audit_log = folder_ + "/none/audit";
  EXPECT_THAT(RecordFiles::Open(flags_).status().message(),
              AllOf(HasSubstr("--audit-log"), HasSubstr(flags_.audit_log)));
  flags_.audit_log.clear();
  flags_.trace_file = folder_;
  EXPECT_THAT(RecordFiles::Open(flags_).status().message(),
              AllOf(HasSubstr("--trace-file"), HasSubstr(folder_)));
}

}  // namespace
}  // namespace txl
