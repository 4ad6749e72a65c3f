#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/commands.h"
#include "tests/server/store/store_fixture.h"

namespace txl {
namespace {

class StoreCommandTest : public JournalTest {
 protected:
  StoreCommandTest() {
    journal_->Create(Head("a"), Sequence(Ids(5)));
    journal_->Create(Head("b\n"), Sequence(Ids(6)));
    journal_.reset();
  }

  int Run(const std::string& what) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = RunStoreCommand({"store", what, options_.folder});
    error_ = testing::internal::GetCapturedStderr();
    output_ = testing::internal::GetCapturedStdout();
    return code;
  }
  bool Says(const std::string& line) const {
    return ("\n" + output_).find("\n" + line + "\n") != std::string::npos;
  }

  std::string output_, error_;
};

TEST_F(StoreCommandTest, OnlyItsOwnWordBeginsIt) {
  EXPECT_TRUE(IsStoreCommand({"store"}));
  EXPECT_TRUE(IsStoreCommand({"store", "check", "x"}));
  EXPECT_FALSE(IsStoreCommand({}));
  EXPECT_FALSE(IsStoreCommand({"--store", "check"}));
}

TEST_F(StoreCommandTest, ASoundStoreIsToldAsSound) {
  EXPECT_EQ(Run("check"), 0);
  EXPECT_TRUE(Says("sessions 2")) << output_;
  EXPECT_TRUE(Says("tokens 11"));
  EXPECT_TRUE(Says("sessions_of_model model 2"));
  EXPECT_TRUE(Says("sound"));
  EXPECT_FALSE(error_.empty()) << "how far it is";
}

TEST_F(StoreCommandTest, DamageIsToldInOneLineASessionAndMended) {
  Tamper("UPDATE session SET position=2");
  EXPECT_EQ(Run("check"), 1);
  EXPECT_TRUE(Says("damaged_sessions 2")) << output_;
  EXPECT_NE(output_.find("damaged b\\n: "), std::string::npos);
  EXPECT_TRUE(Says("damaged"));
  EXPECT_EQ(Run("repair"), 0);
  EXPECT_TRUE(Says("sessions_now 0")) << output_;
  EXPECT_TRUE(Says("sound"));
}

TEST_F(StoreCommandTest, ACompactedStoreSaysItsSize) {
  EXPECT_EQ(Run("compact"), 0);
  EXPECT_NE(output_.find("bytes_after "), std::string::npos);
}

TEST_F(StoreCommandTest, AStoreThatIsInUseOrNotThereFails) {
  Reopen();
  EXPECT_EQ(Run("check"), 1);
  EXPECT_NE(error_.find("another process"), std::string::npos);
  journal_.reset();
  options_.folder += "/nothing";
  EXPECT_EQ(Run("check"), 1);
  EXPECT_NE(error_.find("there is no store"), std::string::npos);
}

TEST_F(StoreCommandTest, WrongArgumentsAreUsage) {
  EXPECT_EQ(Run("mend"), 2);
  EXPECT_NE(error_.find("usage:"), std::string::npos);
  EXPECT_EQ(RunStoreCommand({"store"}), 2);
}

TEST_F(StoreCommandTest, HelpGoesToStandardOutput) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(RunStoreCommand({"store", "--help"}), 0);
  EXPECT_NE(testing::internal::GetCapturedStdout().find("check|repair"),
            std::string::npos);
}

}  // namespace
}  // namespace txl
