#include "client/cli/admin_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"

namespace txl::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

std::vector<std::string> Words(absl::string_view line) {
  return absl::StrSplit(line, absl::ByAnyChar(" \n"), absl::SkipEmpty());
}

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

TEST(TenantSessions, SayWhetherTheyAreInASlot) {
  v1::TenantSession session;
  session.mutable_session()->set_session_id("verona");
  session.mutable_session()->set_state(v1::SESSION_STATE_BUSY);
  session.mutable_session()->set_position(12);
  const auto begin = [&] {
    auto words = Words(FormatTenantSession(session));
    words.resize(4);
    return words;
  };
  EXPECT_THAT(begin(), ElementsAre("no", "verona", "busy", "12"));
  session.set_in_slot(true);
  EXPECT_THAT(begin(), ElementsAre("yes", "verona", "busy", "12"));
  // Columns stand under their names.
  EXPECT_EQ(TenantSessionHeader().find("SESSION"),
            FormatTenantSession(session).find("verona"));
}

TEST(Quotas, AreWhatIsTakenOfTheLimit) {
  v1::GetQuotasResponse quotas;
  v1::TenantQuotas* const alice = quotas.add_tenants();
  alice->set_tenant("alice");
  alice->set_weight(2.5);
  alice->mutable_turns()->set_limit(8);
  alice->mutable_turns()->set_used(3);
  alice->mutable_sessions()->set_limit(100);
  alice->mutable_sessions()->set_used(12);
  alice->mutable_bytes()->set_used(2048);
  alice->mutable_tokens_in_per_minute()->set_limit(600);
  alice->mutable_tokens_in_per_minute()->set_used(0);
  alice->mutable_longest_turn()->set_seconds(90);
  v1::TenantQuotas* const bob = quotas.add_tenants();
  bob->set_tenant("bob");
  bob->set_weight(1);
  bob->set_draining(true);
  bob->mutable_turns()->set_used(1);
  const std::vector<std::string> lines = Lines(FormatQuotas(quotas));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0], StartsWith("TENANT"));
  EXPECT_THAT(Words(lines[1]),
              ElementsAre("alice", "serving", "2.5", "3/8", "12/100", "2048/-",
                          "-", "0/600", "-", "1m30s"));
  EXPECT_THAT(Words(lines[2]), ElementsAre("bob", "draining", "1", "1/-", "-",
                                           "-", "-", "-", "-", "-"));
}

TEST(ReloadedFiles, SayWhatIsWrongWithThem) {
  v1::ReloadResponse reload;
  EXPECT_EQ(FormatReload(reload), "the server has no such files\n");
  v1::ReloadedFile* file = reload.add_files();
  file->set_setting("keys");
  file->set_path("/k");
  file = reload.add_files();
  file->set_setting("tenants");
  file->set_path("/t");
  file->set_error("line 1");
  EXPECT_EQ(FormatReload(reload), "keys /k: taken\ntenants /t: line 1\n");
}

TEST(DrainingTenants, AreNamedWithTheTurnsThatGoOn) {
  v1::DrainTenantResponse drain;
  EXPECT_EQ(FormatDrain("alice", drain), "draining: no tenant\n");
  drain.add_draining_tenants("alice");
  drain.add_draining_tenants("bob");
  drain.set_turns(0);
  EXPECT_EQ(FormatDrain("alice", drain),
            "draining: alice, bob\nturns of alice: 0\n");
}

}  // namespace

}  // namespace txl::cli
