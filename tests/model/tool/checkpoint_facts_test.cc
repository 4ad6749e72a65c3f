#include "model/tool/checkpoint_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "model/base/number_format.h"
#include "model/cpu/attention_form.h"
#include "model/cpu/native_weights.h"
#include "model/tool/number_formats.h"

namespace txl {
namespace {

using nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;

ModelConfig Config() {
  ModelConfig config;
  config.vocab_size = 130;
  config.n_layer = 2;
  config.n_head = 2;
  config.d_head = 20;
  config.d_model = config.d_embed = 80;
  config.d_inner = 100;
  config.mem_len = 70;
  return config;
}

std::vector<std::string> Keys(const ordered_json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

std::string Printed(const ordered_json& facts) {
  std::ostringstream out;
  PrintFacts(facts, /*tensors=*/true, out);
  return out.str();
}

TEST(MemoryBytesTest, AreLayersTimesRowsTimesWidth) {
  EXPECT_EQ(MemoryBytes(Config())["f32"], 2 * 70 * 80 * 4);
  EXPECT_EQ(MemoryBytes(Config())["f16"], 2 * 70 * 80 * 2);
}

TEST(NativeFactsTest, EveryFormatAndFormHasAFigure) {
  const ordered_json facts = NativeFacts(Config(), {});
  for (const char* form : {"projected", "absorbed"}) {
    EXPECT_THAT(Keys(facts["native_weight_bytes"][form]),
                ElementsAre("f32", "bf16", "f16", "int8", "int4"));
  }
  EXPECT_THAT(Keys(facts["native_position_key_bytes"]),
              ElementsAre("f32", "bf16", "f16", "int8"));
  for (const char* table : {"native_form", "native_slot_bytes"}) {
    EXPECT_THAT(Keys(facts[table]), ElementsAre("memory_f32", "memory_bf16",
                                                "memory_f16", "memory_int8"));
  }
  for (const auto& [memory, slots] : facts["native_slot_bytes"].items()) {
    EXPECT_THAT(Keys(slots),
                ElementsAre("absorbed", "projected_f32", "projected_bf16",
                            "projected_f16", "projected_int8"));
  }
}

TEST(NativeFactsTest, TheFormIsTheOneThatAServerTakes) {
  const ordered_json forms = NativeFacts(Config(), {})["native_form"];
  for (const NamedFormat& memory : kRowFormats) {
    for (const NamedFormat& derived : kRowFormats) {
      NativeFormats formats;
      formats.memory = memory.format;
      formats.derived = derived.format;
      EXPECT_EQ(forms[std::string("memory_") + memory.name]
                     [std::string("derived_") + derived.name],
                FormName(ResolveForm(Config(), formats)));
    }
  }
  // Twenty heads are never worth the arithmetic of absorbing them.
  ModelConfig many_heads = Config();
  many_heads.n_head = 20;
  many_heads.d_head = 4;
  EXPECT_EQ(
      NativeFacts(many_heads, {})["native_form"]["memory_f32"]["derived_f32"],
      "projected");
}

TEST(NativeFactsTest, ASlotHoldsStoredAndInProjectedFormDerivedRows) {
  const ordered_json slots = NativeFacts(Config(), {})["native_slot_bytes"];
  // 70 rows and 64 spare ones take three tiles of 64 positions.
  const int64_t rows = 192 * 80;
  // Keys are 20 wide, values 20 rounded up to 32, for two heads.
  const int64_t derived = 192 * 2 * (20 + 32);
  const ordered_json& f32 = slots["memory_f32"];
  EXPECT_EQ(f32["absorbed"], 2 * 4 * rows);
  EXPECT_EQ(f32["projected_f32"], 2 * (4 * rows + 4 * derived));
  EXPECT_EQ(f32["projected_f16"], 2 * (4 * rows + 2 * derived));
  EXPECT_EQ(slots["memory_f16"]["absorbed"], 2 * 2 * rows);
  EXPECT_EQ(slots["memory_f16"]["projected_f32"], 2 * (2 * rows + 4 * derived));
  EXPECT_EQ(slots["memory_bf16"]["projected_bf16"],
            2 * (2 * rows + 2 * derived));
}

TEST(NativeFactsTest, NeedNoMemoryOfTheModelsSize) {
  ModelConfig config = Config();
  config.d_model = config.d_embed = config.d_inner = 1 << 16;
  config.n_layer = 1000;
  config.mem_len = 1 << 20;
  // More than any machine has.
  EXPECT_GT(
      NativeFacts(config, {})["native_slot_bytes"]["memory_f32"]["absorbed"],
      int64_t{1} << 47);
}

TEST(PrintFactsTest, ScalarsHaveALineAndObjectsAreIndented) {
  EXPECT_EQ(Printed({{"kind", "checkpoint"},
                     {"sizes", {{"f32", 4}, {"f16", 2}}},
                     {"oddities", {"no vocabulary"}},
                     {"nothing", ordered_json::array()}}),
            "kind               checkpoint\n"
            "sizes:\n"
            "  f32              4\n"
            "  f16              2\n"
            "oddities:\n"
            "  no vocabulary\n");
}

TEST(PrintFactsTest, ObjectsInObjectsAreOneLine) {
  EXPECT_EQ(Printed({{"slots",
                      {{"memory_f32", {{"derived_f32", 8}, {"derived_f16", 6}}},
                       {"memory_f16", {{"derived_f32", 7}}}}}}),
            "slots:\n"
            "  memory_f32       derived_f32 8, derived_f16 6\n"
            "  memory_f16       derived_f32 7\n");
}

TEST(PrintFactsTest, BytesAreReadableAtAnyDepth) {
  EXPECT_EQ(Printed({{"slot_bytes", {{"f32", {{"absorbed", 1638400}}}}},
                     {"bytes", 512}}),
            "slot_bytes:\n"
            "  f32              absorbed 1.6 MiB\n"
            "bytes              512 B\n");
}

TEST(PrintFactsTest, TensorsAreCountedUnlessAskedFor) {
  std::ostringstream out;
  PrintFacts({{"tensors", {{{"name", "emb.0.w"}}}}}, /*tensors=*/false, out);
  EXPECT_EQ(out.str(), "tensors            1 (--tensors lists them)\n");
}

TEST(PrintFactsTest, FieldsStandBesideWhoSaidThem) {
  const std::string text =
      Printed({{"config", {{"mem_len", 12}, {"window", 9}}},
               {"origins", {{"mem_len", "checkpoint"}}},
               {"tensors",
                {{{"name", "emb.0.w"}, {"dtype", "F16"}, {"shape", {7, 4}}}}}});
  EXPECT_THAT(text, testing::ContainsRegex("mem_len +12 +checkpoint\n"));
  EXPECT_THAT(text, testing::ContainsRegex("window +9\n"));
  EXPECT_THAT(text, testing::ContainsRegex("emb.0.w +F16 +\\[7,4\\]\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("origins")));
}

}  // namespace
}  // namespace txl
