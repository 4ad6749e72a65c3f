// Administration: the sessions of any tenant.

#include <gmock/gmock.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/server/rpc/admin_world.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AdminSessions : public ::testing::Test {
 protected:
  void Make(const std::string& tenant, const std::string& id) {
    ASSERT_TRUE(
        world_.rpc.store->Create(SessionName(tenant, id), std::nullopt).ok());
  }
  std::vector<std::string> List(const std::string& request) {
    v1::ListTenantSessionsResponse page;
    EXPECT_EQ(world_.Call(&Admin::ListTenantSessions, request, &page), "OK");
    std::vector<std::string> ids;
    for (const auto& session : page.sessions()) {
      ids.push_back(session.session().session_id());
    }
    next_page_ = page.next_page_token();
    return ids;
  }
  bool InSlot(const std::string& id) {
    v1::ListTenantSessionsResponse page;
    EXPECT_EQ(world_.Call(&Admin::ListTenantSessions, "", &page), "OK");
    for (const auto& session : page.sessions()) {
      if (session.session().session_id() == id) return session.in_slot();
    }
    ADD_FAILURE() << "no session " << id;
    return false;
  }
  std::string MoveOut(const std::string& request) {
    v1::MoveOutSessionResponse response;
    const std::string outcome =
        world_.Call(&Admin::MoveOutSession, request, &response);
    if (outcome != "OK") return outcome;
    return response.moved() ? "moved" : "not moved";
  }
  std::string End(const std::string& request) {
    v1::EndSessionResponse response;
    return world_.Call(&Admin::EndSession, request, &response);
  }

  AdminWorld world_;
  std::string next_page_;
};

TEST_F(AdminSessions, AreListedOfOneTenantPageByPage) {
  for (const char* id : {"a", "b", "c"}) Make("alice", id);
  Make("bob", "b");
  Make("default", "d");
  EXPECT_THAT(List("tenant: 'alice' page_size: 2"), ElementsAre("a", "b"));
  ASSERT_NE(next_page_, "");
  EXPECT_THAT(List(absl::StrCat("tenant: 'alice' page_size: 2 page_token: '",
                                next_page_, "'")),
              ElementsAre("c"));
  EXPECT_EQ(next_page_, "");
  EXPECT_THAT(List("tenant: 'bob'"), ElementsAre("b"));
  EXPECT_THAT(List("tenant: 'nobody'"), IsEmpty());
  EXPECT_THAT(List(""), ElementsAre("d")) << "no tenant is the default one";
}

TEST_F(AdminSessions, MoveOutOfTheirSlotsAndGoOn) {
  world_.rpc.MakeSession("s", {1, 2, 3, 4});
  EXPECT_TRUE(InSlot("s"));
  EXPECT_EQ(MoveOut("session_id: 's'"), "moved");
  EXPECT_FALSE(InSlot("s"));
  EXPECT_EQ(world_.rpc.metrics.Get().slots_used, 0);
  EXPECT_EQ(MoveOut("session_id: 's'"), "not moved");
  const Stream turn =
      world_.rpc.Generate("session_id: 's' stop { max_tokens: 3 }");
  EXPECT_EQ(turn.ids(), world_.rpc.runner.Continue({1, 2, 3, 4}, 3));
  EXPECT_EQ(world_.rpc.metrics.Get().image_restores_ok, 1);
}

TEST_F(AdminSessions, DoNotMoveOutWhileATurnRuns) {
  world_.rpc.MakeSession("s", {1, 2, 3, 4});
  world_.rpc.runner.Hold();
  std::thread turn([&] {
    EXPECT_TRUE(world_.rpc.Generate("session_id: 's' stop { max_tokens: 3 }")
                    .status.ok());
  });
  EXPECT_TRUE(Eventually([&] { return world_.rpc.store->counts().busy == 1; }));
  EXPECT_EQ(MoveOut("session_id: 's'"), "ABORTED SESSION_BUSY");
  world_.rpc.runner.Release();
  turn.join();
  EXPECT_EQ(MoveOut("session_id: 's'"), "moved");
}

TEST_F(AdminSessions, EndWhosesoeverTheyAre) {
  Make("alice", "s");
  Make("bob", "s");
  EXPECT_EQ(End("tenant: 'alice' session_id: 's'"), "OK");
  EXPECT_THAT(List("tenant: 'alice'"), IsEmpty());
  EXPECT_THAT(List("tenant: 'bob'"), ElementsAre("s"));
  EXPECT_EQ(End("tenant: 'alice' session_id: 's'"),
            "NOT_FOUND SESSION_UNKNOWN");
}

TEST_F(AdminSessions, EndTheTurnThatRunsOnThem) {
  world_.rpc.MakeSession("s", {1, 2});
  world_.rpc.runner.Hold();
  std::string outcome;
  std::thread turn([&] {
    outcome = Outcome(
        world_.rpc.Generate("session_id: 's' stop { max_tokens: 3 }").status);
  });
  EXPECT_TRUE(Eventually([&] { return world_.rpc.store->counts().busy == 1; }));
  EXPECT_EQ(End("session_id: 's'"), "OK");
  world_.rpc.runner.Release();
  turn.join();
  EXPECT_EQ(outcome, "ABORTED SESSION_DELETED");
}

TEST_F(AdminSessions, AreNamedByFieldsThatAreChecked) {
  for (const char* tenant : {"a/b", "alice smith", "\\303\\244"}) {
    const std::string field = absl::StrCat("tenant: '", tenant, "' ");
    const char* const refused = "INVALID_ARGUMENT FIELD_INVALID tenant";
    v1::ListTenantSessionsResponse page;
    EXPECT_EQ(world_.Call(&Admin::ListTenantSessions, field, &page), refused);
    EXPECT_EQ(MoveOut(field + "session_id: 's'"), refused);
    EXPECT_EQ(End(field + "session_id: 's'"), refused);
  }
  for (const char* session : {"", "session_id: 'a b'"}) {
    const char* const refused = "INVALID_ARGUMENT FIELD_INVALID session_id";
    EXPECT_EQ(MoveOut(session), refused);
    EXPECT_EQ(End(session), refused);
  }
  v1::ListTenantSessionsResponse page;
  EXPECT_EQ(world_.Call(&Admin::ListTenantSessions, "page_size: -1", &page),
            "INVALID_ARGUMENT FIELD_INVALID page_size");
  EXPECT_EQ(world_.Call(&Admin::ListTenantSessions, "page_token: '!'", &page),
            "INVALID_ARGUMENT FIELD_INVALID page_token");
  EXPECT_EQ(MoveOut("session_id: 'none'"), "NOT_FOUND SESSION_UNKNOWN");
}

}  // namespace
}  // namespace txl
