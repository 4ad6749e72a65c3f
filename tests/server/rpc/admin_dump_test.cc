// The dump for a report of a bug.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "server/api/services.h"
#include "tests/server/rpc/admin_world.h"

namespace txl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

Json DumpOf(AdminWorld& world) {
  v1::DumpResponse dump;
  EXPECT_EQ(world.Call(&Admin::Dump, "", &dump), "OK");
  return Json::parse(dump.json());
}

TEST(Dump, HasTheServerTheSchedulerAndTheStore) {
  AdminWorld world;
  world.rpc.MakeSession("verona", {'a', 'b', 'c'});
  const Json dump = DumpOf(world);
  EXPECT_EQ(dump["model"]["name"], "fake");
  EXPECT_EQ(dump["status"]["state"], "SERVER_STATE_READY");
  EXPECT_EQ(dump["status"]["sessions_idle"], "1");
  EXPECT_EQ(dump["draining_tenants"], Json::array());
  const Json& scheduler = dump["scheduler"];
  EXPECT_EQ(scheduler["answered"], true);
  EXPECT_EQ(scheduler["all_turns"], 0);
  EXPECT_EQ(scheduler["slots_used"], 1);
  ASSERT_EQ(scheduler["slots"].size(), 1u);
  EXPECT_EQ(scheduler["slots"][0]["rows"], 2);
  const Json& store = dump["store"];
  EXPECT_EQ(store["named"], 1);
  EXPECT_EQ(store["in_slot"], 1);
  ASSERT_EQ(store["sessions_in_slots"].size(), 1u);
  EXPECT_EQ(store["sessions_in_slots"][0]["position"], 3);
  EXPECT_EQ(store["sessions_in_slots"][0]["key"], scheduler["slots"][0]["key"]);
}

// The ids have so many digits that no time in the dump has them by chance.
TEST(Dump, TellsNeitherTextsNorNames) {
  AdminWorld world;
  const SessionName secret("capulet", "balcony");
  ASSERT_TRUE(world.rpc.store->Create(secret, std::nullopt).ok());
  {
    auto lease = *world.rpc.store->Acquire(secret);
    ASSERT_TRUE(lease.Reserve(2).ok());
    lease.Append({1'987'654'321, 1'876'543'219});
    world.rpc.store->SetInSlot(lease.key(), true);
  }
  world.rpc.lifecycle.SetTenantDraining("capulet", true);
  const Json dump = DumpOf(world);
  const std::string text = dump.dump();
  for (const char* told : {"capulet", "balcony", "1987654321", "1876543219"}) {
    EXPECT_THAT(text, Not(HasSubstr(told)));
  }
  // What it has instead is what the log has.
  const Json& session = dump["store"]["sessions_in_slots"][0];
  EXPECT_EQ(session["tenant"], dump["draining_tenants"][0]);
  // printf capulet/balcony | sha256sum, and of the tenant alone.
  EXPECT_EQ(session["session"], "b1cbcb93391d3200");
  EXPECT_EQ(session["tenant"], "e329fda464f1506c");
}

TEST(Dump, HasTheTurnsOfTheMoment) {
  AdminWorld world;
  SchedulerReport report;
  TurnReport turn;
  turn.state = "queued";
  turn.kind = TurnKind::kAlternatives;
  turn.key = 7;
  turn.name = SessionName("alice", "s");
  turn.tenant = "alice";
  turn.priority = 3;
  turn.age = absl::Milliseconds(2500);
  turn.tokens_in = 9;
  report.turns = {turn};
  report.all_turns = 5;
  const Json scheduler =
      Json::parse(DumpJson(world.context, report))["scheduler"];
  EXPECT_EQ(scheduler["all_turns"], 5);
  const Json& told = scheduler["turns"][0];
  EXPECT_EQ(told["state"], "queued");
  EXPECT_EQ(told["kind"], "alternatives");
  EXPECT_EQ(told["key"], 7);
  EXPECT_EQ(told["priority"], 3);
  EXPECT_EQ(told["age_seconds"], 2.5);
  EXPECT_EQ(told["tokens_in"], 9);
  EXPECT_EQ(told["slot"], -1);
  EXPECT_TRUE(told["session"].is_string());
  // A turn without a session or an account says so.
  report.turns[0].name = SessionName();
  report.turns[0].tenant = "";
  const Json unnamed =
      Json::parse(DumpJson(world.context, report))["scheduler"]["turns"][0];
  EXPECT_TRUE(unnamed["session"].is_null());
  EXPECT_TRUE(unnamed["tenant"].is_null());
}

// The state of a server that hangs is what one wants to know most.
TEST(Dump, ComesWithoutTheSchedulerWhereTheDeviceHangs) {
  AdminWorld world;
  world.rpc.runner.Hold();
  grpc::ClientContext client;
  auto reader = world.rpc.generation->Generate(
      &client, Proto<v1::GenerateRequest>("text: 'a'"));
  EXPECT_TRUE(Eventually([&] { return !world.rpc.runner.plans().empty(); }));
  const Json dump = DumpOf(world);
  EXPECT_EQ(dump["scheduler"], Json({{"answered", false}}));
  EXPECT_EQ(dump["status"]["turns_active"], "1");
  world.rpc.runner.Release();
  client.TryCancel();
  v1::GenerateResponse event;
  while (reader->Read(&event)) {
  }
  (void)reader->Finish();
}

}  // namespace
}  // namespace txl
