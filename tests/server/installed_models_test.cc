#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/start_up.h"

namespace txl {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class FindModelTest : public testing::Test {
 protected:
  FindModelTest()
      : before_(fs::current_path()),
        root_(absl::StrCat(testing::TempDir(), "/txl-installed-", getpid())),
        installed_(root_ + "/share/txl/models") {
    fs::create_directories(root_ + "/here/mine");
    fs::create_directories(installed_ + "/mine");
    fs::create_directories(installed_ + "/shakespeare");
    std::ofstream(installed_ + "/notes") << "no model";
    fs::current_path(root_ + "/here");
  }
  ~FindModelTest() override {
    fs::current_path(before_);
    fs::remove_all(root_);
  }

  std::string Error(const std::string& model, const std::string& installed) {
    const auto found = FindModel(model, installed);
    EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
    return std::string(found.status().message());
  }

  const fs::path before_;
  const std::string root_;
  const std::string installed_;
};

TEST_F(FindModelTest, FindsAnInstalledModelByItsName) {
  EXPECT_EQ(*FindModel("shakespeare", installed_), installed_ + "/shakespeare");
}

TEST_F(FindModelTest, TakesWhatIsHereBeforeWhatIsInstalled) {
  EXPECT_EQ(*FindModel("mine", installed_), "mine");
  fs::remove("mine");
  EXPECT_EQ(*FindModel("mine", installed_), installed_ + "/mine");
}

TEST_F(FindModelTest, LeavesPathsAsTheyAreWhetherOrNotTheyExist) {
  for (const std::string path :
       {"./shakespeare", "shakespeare/", "/nowhere", "models/shakespeare"}) {
    EXPECT_EQ(*FindModel(path, installed_), path);
  }
}

TEST_F(FindModelTest, SaysWhereItLookedAndWhatIsThere) {
  EXPECT_THAT(Error("shakespere", installed_),
              AllOf(HasSubstr("--model"), HasSubstr("\"shakespere\""),
                    HasSubstr(installed_ + ", "),
                    HasSubstr("there are: mine, shakespeare")));
  EXPECT_THAT(Error("notes", installed_), HasSubstr("\"notes\""));
  EXPECT_THAT(Error("m", root_ + "/none"),
              HasSubstr(root_ + "/none, where there are none"));
}

TEST(InstalledModels, LieBesideTheFolderOfTheProgram) {
  const fs::path program = fs::canonical("/proc/self/exe");
  EXPECT_EQ(InstalledModels(),
            (program.parent_path().parent_path() / "share" / "txl" / "models")
                .string());
}

}  // namespace
}  // namespace txl
