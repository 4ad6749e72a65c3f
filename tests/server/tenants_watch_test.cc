#include "server/tenants_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/base/log.h"
#include "tests/fakes/fake_clock.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TenantsWatchTest : public ::testing::Test {
 protected:
  TenantsWatchTest() {
    Write("[tenant.a]\n[tenant.b]\n[tenant.c]\n");
    // Only a call of Reload reads the file again.
    auto watch =
        TenantsWatch::Start(path_, &tenants_, &clock_, nullptr, absl::Hours(1));
    EXPECT_TRUE(watch.ok()) << watch.status();
    watch_ = *std::move(watch);
    watch_->OnRemoved([this](const std::string& tenant) {
      removed_.push_back(tenant);
      turns_.push_back(
          tenants_.Find(tenant, clock_.Monotonic())->limits().turns);
    });
  }
  ~TenantsWatchTest() override {
    watch_.reset();
    std::remove(path_.c_str());
  }

  void Write(const std::string& text) { std::ofstream(path_) << text; }
  absl::Status Take(const std::string& text) {
    Write(text);
    return watch_->Reload();
  }

  const LogCapture log_;
  const std::string path_ =
      ::testing::TempDir() + "/watched-" +
      ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".toml";
  FakeClock clock_;
  Tenants tenants_{[](const std::string&) { return 0; }};
  std::unique_ptr<TenantsWatch> watch_;
  std::vector<std::string> removed_;
  std::vector<std::optional<int64_t>> turns_;  // theirs when they were told of
};

TEST_F(TenantsWatchTest, TellsOfEachTenantThatLeavesTheFileOnce) {
  EXPECT_THAT(removed_, IsEmpty());
  ASSERT_TRUE(Take("[tenant.b]\n").ok());
  EXPECT_THAT(removed_, ElementsAre("a", "c"));
  ASSERT_TRUE(watch_->Reload().ok());
  EXPECT_THAT(removed_, ElementsAre("a", "c"));
}

TEST_F(TenantsWatchTest, ATenantIsToldOfWhenItsLimitsHaveGone) {
  ASSERT_TRUE(Take("[tenant.b]\nturns = 3\n").ok());
  ASSERT_TRUE(Take("").ok());
  EXPECT_THAT(removed_, ElementsAre("a", "c", "b"));
  EXPECT_FALSE(turns_.back().has_value());
}

TEST_F(TenantsWatchTest, NewTenantsAndNewLimitsRemoveNobody) {
  ASSERT_TRUE(
      Take("[tenant.a]\nturns = 3\n[tenant.b]\n[tenant.c]\n[tenant.d]\n").ok());
  EXPECT_THAT(removed_, IsEmpty());
}

TEST_F(TenantsWatchTest, AFileThatIsNotTakenRemovesNobody) {
  EXPECT_FALSE(Take("[tenant.a]\nturns = 0\n").ok());
  EXPECT_THAT(removed_, IsEmpty());
  ASSERT_TRUE(Take("[tenant.a]\n").ok());
  EXPECT_THAT(removed_, ElementsAre("b", "c"));
}

TEST_F(TenantsWatchTest, ATenantThatComesBackCanLeaveAgain) {
  ASSERT_TRUE(Take("[tenant.a]\n[tenant.b]\n").ok());
  ASSERT_TRUE(Take("[tenant.a]\n[tenant.b]\n[tenant.c]\n").ok());
  ASSERT_TRUE(Take("[tenant.a]\n[tenant.b]\n").ok());
  EXPECT_THAT(removed_, ElementsAre("c", "c"));
}

}  // namespace
}  // namespace txl
