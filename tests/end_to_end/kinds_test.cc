// A model of REMI's events in small, which knows nothing of music: with
// follow_kinds every token obeys the table of its directory, whether it is
// guessed ahead or not, and without it they do not.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/turns.h"

namespace txl::testing {
namespace {

// Of the 157 ids of the model cpw; those from 150 on are of no kind.
constexpr char kTable[] = R"({"kinds": {
  "Bar": {"tokens": [0], "next": ["Bar", "Position"]},
  "Position": {"tokens": [[1, 16]], "next": ["Chord", "Velocity"]},
  "Chord": {"tokens": [[17, 40]], "next": ["Bar", "Position"]},
  "Velocity": {"tokens": [[41, 60]], "next": ["Pitch"],
               "next_temperature": 0.5},
  "Pitch": {"tokens": [[61, 120]], "next": ["Duration"]},
  "Duration": {"tokens": [[121, 149]], "next": ["Bar", "Position"]}
}})";

// The same by hand: kind of an id, and what may stand behind it.
char KindOf(uint32_t id) {
  if (id == 0) return 'b';
  if (id <= 16) return 'p';
  if (id <= 40) return 'c';
  if (id <= 60) return 'v';
  if (id <= 120) return 'n';
  return id < 150 ? 'd' : '-';
}
const std::map<char, std::string>& Next() {
  static const auto* const next = new std::map<char, std::string>{
      {'b', "bp"}, {'p', "cv"}, {'c', "bp"},     {'v', "n"},
      {'n', "d"},  {'d', "bp"}, {'-', "bpcvnd-"}};
  return *next;
}

int Broken(const std::vector<uint32_t>& ids) {
  int broken = 0;
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    const std::string& next = Next().at(KindOf(ids[i]));
    broken += next.find(KindOf(ids[i + 1])) == std::string::npos ? 1 : 0;
  }
  return broken;
}

std::string ModelWithKinds(const std::string& generation) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::path(::testing::TempDir()) /
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (const char* file : {"config.json", "model.safetensors"}) {
    fs::copy_file(GoldenModel("cpw") + "/" + file, folder / file);
  }
  std::ofstream(folder / "kinds.json") << kTable;
  std::ofstream(folder / "generation.json") << generation;
  return folder.string();
}

v1::GenerateRequest Ask(std::vector<uint32_t> prompt, uint64_t seed) {
  v1::GenerateRequest request = Greedy("", prompt, 200);
  request.mutable_sampling()->set_temperature(1.2);
  request.mutable_sampling()->set_seed(seed);
  request.mutable_sampling()->set_penalty_window(0);
  return request;
}

std::vector<uint32_t> Music(Client& client, v1::GenerateRequest request,
                            bool follows) {
  request.mutable_sampling()->set_follow_kinds(follows);
  const TurnOutput turn = RunTurn(client, request);
  EXPECT_TRUE(turn.status.ok()) << turn.status;
  EXPECT_EQ(turn.ids.size(), 200u);
  EXPECT_EQ(turn.started.sampling().follow_kinds(), follows);
  std::vector<uint32_t> ids(request.tokens().ids().begin(),
                            request.tokens().ids().end());
  ids.insert(ids.end(), turn.ids.begin(), turn.ids.end());
  return ids;
}

TEST(FollowedKinds, EveryPairObeysTheTableAndGuessesChangeNothing) {
  const std::string model = ModelWithKinds("{}");
  std::vector<std::vector<uint32_t>> plain;
  for (const char* speculate : {"off", "auto"}) {
    ServerProcess server(model, {"--speculate", speculate});
    const auto info = server.client().GetModel();
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_EQ(std::set<std::string>(info->token_kinds().begin(),
                                    info->token_kinds().end()),
              (std::set<std::string>{"Bar", "Chord", "Duration", "Pitch",
                                     "Position", "Velocity"}));
    std::set<char> kinds;
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const auto ids = Music(server.client(), Ask({0}, seed), true);
      EXPECT_EQ(Broken(ids), 0);
      for (const uint32_t id : ids) kinds.insert(KindOf(id));
      if (speculate == std::string("off")) {
        plain.push_back(ids);
      } else {
        EXPECT_EQ(ids, plain[seed]);
      }
      EXPECT_GT(Broken(Music(server.client(), Ask({0}, seed), false)), 50);
    }
    EXPECT_EQ(kinds, (std::set<char>{'b', 'p', 'c', 'v', 'n', 'd'}));
  }
}

TEST(FollowedKinds, StandBehindWhatASessionHolds) {
  ServerProcess server(ModelWithKinds("{}"));
  Client& client = server.client();
  for (const uint32_t last : {0u, 16u, 17u, 41u, 61u, 121u}) {
    const std::string id = absl::StrCat("s", last);
    CreateSession(client, id);
    ASSERT_TRUE(Append(client, id, std::vector<uint32_t>{156, last}).ok());
    v1::GenerateRequest request = Ask({}, last);
    request.set_session_id(id);
    request.mutable_stop()->set_max_tokens(200);
    std::vector<uint32_t> ids = Music(client, request, true);
    ids.insert(ids.begin(), last);
    EXPECT_EQ(Broken(ids), 0) << last;
  }
}

TEST(FollowedKinds, AreTheModelsDefaultWhereItSaysSo) {
  ServerProcess server(ModelWithKinds(R"({"follow_kinds": true})"));
  const TurnOutput turn = RunTurn(server.client(), Ask({0}, 3));
  ASSERT_TRUE(turn.status.ok()) << turn.status;
  EXPECT_TRUE(turn.started.sampling().follow_kinds());
  std::vector<uint32_t> ids = turn.ids;
  ids.insert(ids.begin(), 0);
  EXPECT_EQ(Broken(ids), 0);
}

TEST(FollowedKinds, ATurnForWhichNothingIsLeftSaysWhy) {
  ServerProcess server(ModelWithKinds("{}"));
  v1::GenerateRequest request = Ask({61}, 0);  // a pitch: a duration follows
  request.mutable_sampling()->set_follow_kinds(true);
  request.mutable_sampling()->add_allowed_token_ids(5);
  const TurnOutput turn = RunTurn(server.client(), request);
  EXPECT_EQ(turn.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(turn.status.message().find("follow_kinds"), std::string::npos)
      << turn.status;
}

}  // namespace
}  // namespace txl::testing
