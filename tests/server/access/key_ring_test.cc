#include "server/access/key_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/digest.h"
#include "server/base/error.h"
#include "server/base/log.h"
#include "server/base/text_file.h"
#include "tests/fakes/fake_clock.h"

namespace txl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

KeyEntry Entry(const std::string& key, const std::string& tenant,
               Role role = Role::kUser) {
  KeyEntry entry;
  entry.caller = {tenant, "name-of-" + key, role};
  entry.digest = Sha256Of(key);
  return entry;
}

class KeyRingTest : public testing::Test {
 protected:
  void Write(const std::vector<KeyEntry>& keys) {
    ASSERT_TRUE(WriteKeysFile(path_, keys).ok());
  }
  void Open() {
    auto ring = KeyRing::Open(path_, &clock_);
    ASSERT_TRUE(ring.ok()) << ring.status();
    ring_ = *std::move(ring);
  }
  absl::StatusOr<Caller> Ask(std::vector<std::string> authorization) {
    return ring_->Identify({std::move(authorization)});
  }
  bool Knows(const std::string& key) { return Ask({"Bearer " + key}).ok(); }

  const std::string path_ =
      absl::StrCat(testing::TempDir(), "/key_ring_", getpid());
  FakeClock clock_;
  LogCapture log_;
  std::unique_ptr<KeyRing> ring_;
};

TEST_F(KeyRingTest, TellsWhoseAKeyIs) {
  Write({Entry("k1", "alice"), Entry("k2", "bob", Role::kMetrics)});
  Open();
  const Caller caller = *Ask({"Bearer k2"});
  EXPECT_EQ(caller.tenant, "bob");
  EXPECT_EQ(caller.name, "name-of-k2");
  EXPECT_EQ(caller.role, Role::kMetrics);
  EXPECT_EQ(Ask({"bearer k1"})->tenant, "alice") << "schemes have no case";
}

TEST_F(KeyRingTest, HasOneAnswerToWhateverIsNoKey) {
  KeyEntry old = Entry("old", "alice");
  old.expires = clock_.Now();
  Write({Entry("k1", "alice"), old});
  Open();
  const std::vector<std::string> wrong[] = {{},
                                            {""},
                                            {"Bearer"},
                                            {"Bearer "},
                                            {"k1"},
                                            {"Basic k1"},
                                            {"Bearer k1 "},
                                            {"Bearer  k1"},
                                            {"Bearer K1"},
                                            {"Bearer k"},
                                            {"Bearer k11"},
                                            {"Bearer old"},
                                            {"Bearer k1", "Bearer k1"},
                                            {std::string("Bearer k1\0", 10)}};
  for (const auto& authorization : wrong) {
    const absl::Status status = Ask(authorization).status();
    EXPECT_EQ(status, UnauthenticatedError());
    EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
    EXPECT_EQ(ReasonOf(status), "UNAUTHENTICATED");
  }
}

TEST_F(KeyRingTest, EndsAKeyAtItsTime) {
  KeyEntry short_lived = Entry("k", "alice");
  short_lived.expires = clock_.Now() + absl::Seconds(10);
  Write({short_lived});
  Open();
  clock_.Advance(absl::Seconds(9));
  EXPECT_TRUE(Knows("k"));
  clock_.Advance(absl::Seconds(1));
  EXPECT_FALSE(Knows("k"));
}

TEST_F(KeyRingTest, FollowsItsFile) {
  Write({Entry("k1", "alice")});
  Open();
  Write({Entry("k2", "alice")});
  EXPECT_TRUE(Knows("k1")) << "until it looks";
  ring_->Refresh();
  EXPECT_FALSE(Knows("k1"));
  EXPECT_TRUE(Knows("k2"));
  ring_->Refresh();
  EXPECT_THAT(log_.lines(), ElementsAre(HasSubstr("\"keys\"")))
      << "nothing is said of a file that is the same";
}

TEST_F(KeyRingTest, KeepsItsKeysWhileTheFileIsBroken) {
  Write({Entry("k1", "alice")});
  Open();
  std::ofstream(path_) << "[[key";
  ring_->Refresh();
  ring_->Refresh();
  EXPECT_TRUE(Knows("k1"));
  EXPECT_THAT(log_.lines(),
              ElementsAre(testing::AllOf(HasSubstr("WARNING"),
                                         HasSubstr("keys_unchanged"),
                                         HasSubstr(path_ + ": line 1"))));
  Write({});
  ring_->Refresh();
  EXPECT_FALSE(Knows("k1"));
}

TEST_F(KeyRingTest, ReadsItsFileWhenAskedTo) {
  Write({Entry("k1", "alice")});
  Open();
  EXPECT_TRUE(ring_->Reload().ok()) << "one that is the same";
  Write({Entry("k2", "alice")});
  EXPECT_TRUE(ring_->Reload().ok());
  EXPECT_TRUE(Knows("k2"));
  std::ofstream(path_) << "[[key";
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(ring_->Reload().message(), HasSubstr(path_ + ": line 1"));
  }
  EXPECT_TRUE(Knows("k2"));
}

TEST_F(KeyRingTest, KeepsItsKeysWhileOthersMayReadTheFileOrItIsGone) {
  Write({Entry("k1", "alice")});
  Open();
  ASSERT_EQ(chmod(path_.c_str(), 0644), 0);
  ring_->Refresh();
  EXPECT_TRUE(Knows("k1"));
  unlink(path_.c_str());
  ring_->Refresh();
  EXPECT_TRUE(Knows("k1"));
  EXPECT_EQ(log_.lines().size(), 2u);
}

TEST_F(KeyRingTest, DoesNotOpenWithoutAFileThatItsOwnerAloneMayRead) {
  Write({});
  ASSERT_EQ(chmod(path_.c_str(), 0644), 0);
  EXPECT_THAT(KeyRing::Open(path_, &clock_).status().message(),
              HasSubstr(path_ + ": others may use it"));
  unlink(path_.c_str());
  EXPECT_THAT(KeyRing::Open(path_, &clock_).status().message(),
              HasSubstr(path_));
}

TEST_F(KeyRingTest, TakesACertificateWhereNoKeyIsSent) {
  Write({Entry("k1", "alice")});
  Open();
  const absl::StatusOr<Caller> carol = ring_->Identify({{}, "carol"});
  ASSERT_TRUE(carol.ok()) << carol.status();
  EXPECT_EQ(carol->tenant, "carol");
  EXPECT_EQ(carol->name, "carol");
  EXPECT_EQ(carol->role, Role::kUser);
  EXPECT_EQ(ring_->Identify({{"Bearer k1"}, "carol"})->tenant, "alice");
  EXPECT_EQ(ring_->Identify({{"Bearer no"}, "carol"}).status(),
            UnauthenticatedError())
      << "a wrong key is not mended by a certificate";
}

TEST_F(KeyRingTest, ACertificateWhoseNameNoTenantCanHaveMakesNobody) {
  Write({});
  Open();
  for (const char* name : {"", "haproxy.inner", "Carol Smith", "a/b"}) {
    EXPECT_EQ(ring_->Identify({{}, name}).status(), UnauthenticatedError())
        << name;
  }
}

TEST(CheckRole, LetsInWhoMayAndNamesTheRoleAndWhatItMayNotCall) {
  constexpr char kMethod[] = "txl.v1.GenerationService/Generate";
  const Caller user = {"alice", "laptop", Role::kUser};
  EXPECT_TRUE(CheckRole(user, kUsers, kMethod).ok());
  const absl::Status denied =
      CheckRole({"bob", "scrape", Role::kMetrics}, kUsers, kMethod);
  EXPECT_EQ(denied.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ReasonOf(denied), "PERMISSION_DENIED");
  EXPECT_EQ(denied.message(),
            "the key's role metrics may not call GenerationService/Generate");
  EXPECT_FALSE(CheckRole(user, RoleSet(), kMethod).ok())
      << "what has no rule is refused";
}

TEST_F(KeyRingTest, WithKeysOneIsNeeded) {
  Write({Entry("k1", "alice")});
  Open();
  EXPECT_EQ(txl::Identify(ring_.get(), {{"Bearer k1"}})->tenant, "alice");
  EXPECT_EQ(txl::Identify(ring_.get(), {}).status(), UnauthenticatedError());
}

TEST(Identify, WithoutKeysEverybodyIsTheDefaultTenantAndMayDoAll) {
  const Caller caller = *Identify(nullptr, {{"Bearer anything"}});
  EXPECT_EQ(caller.tenant, "default");
  EXPECT_EQ(caller.name, "");
  EXPECT_EQ(caller.role, Role::kAdmin);
}

TEST_F(KeyRingTest, TheAuditLogHasWhatBecameOfTheFile) {
  const std::string audit = path_ + "_audit";
  std::remove(audit.c_str());
  auto file = LineFile::Open({"audit-log", audit});
  ASSERT_TRUE(file.ok()) << file.status();
  Write({Entry("k1", "alice")});
  auto ring = KeyRing::Open(path_, &clock_, file->get());
  ASSERT_TRUE(ring.ok()) << ring.status();
  LogCapture log;
  Write({Entry("k1", "alice"), Entry("k2", "bob")});
  (*ring)->Refresh();
  std::ofstream(path_) << "broken";
  (*ring)->Refresh();
  file->reset();
  const std::string text = ReadTextFile(audit);
  EXPECT_THAT(text, HasSubstr(R"("event":"keys","fields":{"keys":2})"));
  EXPECT_THAT(text, HasSubstr(R"("event":"keys_unchanged")"));
  EXPECT_EQ(log.lines().size(), 2u);
}

}  // namespace
}  // namespace txl
