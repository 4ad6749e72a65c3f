#include "model/convert/container/rank_shards.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/convert/container/checkpoint_check.h"

namespace txl {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

NativeCheckpoint Rank(const std::string& bytes) {
  NativeCheckpoint checkpoint;
  checkpoint.container = "torch zip";
  checkpoint.tensors["module.w"] =
      *RowMajor(DType::kU8, {static_cast<int64_t>(bytes.size())},
                BytesInMemory(bytes, "w"));
  checkpoint.data = {{"module", {{"w", {{kTensorKey, "module.w"}}}}},
                     {"steps", {7, {{kTensorKey, "module.w"}}}},
                     {"name", "module.w"}};
  return checkpoint;
}

TEST(RankFiles, AreKnownByTheirNames) {
  EXPECT_THAT(
      RankFiles({"latest", "mp_rank_00_model_states.pt",
                 "mp_rank_01_model_states.pt", "mp_rank_x_model_states.pt",
                 "mp_rank__model_states.pt", "mp_rank_02_optim_states.pt",
                 "zero_pp_rank_0_mp_rank_00_optim_states.pt",
                 "mp_rank_00001_model_states.pt"}),
      ElementsAre(Pair("00", "mp_rank_00_model_states.pt"),
                  Pair("01", "mp_rank_01_model_states.pt")));
  EXPECT_THAT(RankFiles({}), IsEmpty());
}

TEST(JoinRanks, NamesTensorsByRank) {
  const auto joined =
      JoinRanks("folder", {{"00", Rank("ab")}, {"01", Rank("cd")}});
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->path, "folder");
  EXPECT_EQ(joined->container, "torch zip");
  EXPECT_EQ(joined->tensors.size(), 2u);
  EXPECT_EQ(BytesOf(*joined, "rank.00.module.w"), "ab");
  EXPECT_EQ(BytesOf(*joined, "rank.01.module.w"), "cd");
}

TEST(JoinRanks, DataRefersToTheNewNames) {
  const auto joined =
      JoinRanks("folder", {{"00", Rank("ab")}, {"01", Rank("cd")}});
  ASSERT_TRUE(joined.ok()) << joined.status();
  const json& one = joined->data["rank"]["01"];
  EXPECT_EQ(one["module"]["w"][kTensorKey], "rank.01.module.w");
  EXPECT_EQ(one["steps"][1][kTensorKey], "rank.01.module.w");
  EXPECT_EQ(one["steps"][0], 7);
  EXPECT_EQ(one["name"], "module.w");  // a string that is no reference
  EXPECT_EQ(joined->data["rank"]["00"]["module"]["w"][kTensorKey],
            "rank.00.module.w");
}

TEST(JoinRanks, NamesAMissingRank) {
  const auto gap =
      JoinRanks("folder", {{"00", Rank("ab")}, {"02", Rank("cd")}});
  EXPECT_EQ(gap.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(gap.status().message(), HasSubstr("folder: the file of rank 1"));
  EXPECT_THAT(JoinRanks("folder", {{"01", Rank("ab")}}).status().message(),
              HasSubstr("rank 0"));
}

}  // namespace
}  // namespace txl
