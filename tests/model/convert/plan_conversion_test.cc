// What is read beside a checkpoint, what is counted, and the text of
// config.json.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/config/model_config.h"
#include "model/convert/convert.h"
#include "tests/model/convert/family/stored_tensors.h"
#include "tests/model/convert/golden_conversion.h"

namespace txl {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// A folder with a Hugging Face model, whose config.json a test may change.
std::string HuggingFaceFolder(const std::string& name, const json& change) {
  const std::string folder = FreshFolder(name);
  std::filesystem::copy_file(
      NativeFile("hf-prelnorm-tied-r", "model.safetensors"),
      folder + "/model.safetensors");
  json config =
      json::parse(FileText(NativeFile("hf-prelnorm-tied-r", "config.json")));
  config.update(change);
  WriteFile(folder + "/config.json", config.dump());
  return folder;
}

PlanOptions Options(const std::string& source) {
  PlanOptions options;
  options.source = source;
  return options;
}

TEST(PlanConversionTest, ReadsTheConfigInTheFolderOrBesideTheFile) {
  const std::string folder =
      HuggingFaceFolder("config_beside", {{"mem_len", 33}});
  for (const std::string& source : {folder, folder + "/model.safetensors"}) {
    const auto conversion = PlanConversion(Options(source));
    ASSERT_TRUE(conversion.ok()) << conversion.status();
    EXPECT_EQ(conversion->plan.config.mem_len, 33) << source;
  }
}

TEST(PlanConversionTest, ABrokenConfigBesideIsNamed) {
  const std::string folder = HuggingFaceFolder("config_broken", json::object());
  WriteFile(folder + "/config.json", "{");
  EXPECT_THAT(PlanConversion(Options(folder)).status().message(),
              HasSubstr("config.json"));
}

TEST(PlanConversionTest, OtherFamiliesReadNoConfigBeside) {
  const std::string folder = FreshFolder("config_foreign");
  std::filesystem::copy_file(NativeFile("kimi-char", "model.pt"),
                             folder + "/model.pt");
  WriteFile(folder + "/config.json", "no config at all");
  const auto conversion = PlanConversion(Options(folder + "/model.pt"));
  EXPECT_TRUE(conversion.ok()) << conversion.status();
}

TEST(PlanConversionTest, ASpecWithAMisspeltFieldIsRefused) {
  const std::string folder = FreshFolder("spec_misspelt");
  WriteFile(folder + "/spec.json", R"({"windows": 7})");
  PlanOptions options = Options(NativeFile("kimi-char", "model.pt"));
  options.spec_path = folder + "/spec.json";
  EXPECT_THAT(PlanConversion(options).status().message(),
              HasSubstr("spec.json: field windows is unknown; did you mean "
                        "window?"));
}

TEST(PlanConversionTest, ASpecWithAFieldOfAnotherTypeIsRefused) {
  const std::string folder = FreshFolder("spec_type");
  PlanOptions options = Options(NativeFile("kimi-char", "model.pt"));
  options.spec_path = folder + "/spec.json";
  for (const char* field :
       {"mem_len", "window", "clamp_len", "tie_weight", "cutoffs"}) {
    WriteFile(options.spec_path, json{{field, "7"}}.dump());
    EXPECT_THAT(PlanConversion(options).status().message(),
                HasSubstr(std::string("spec.json: field ") + field));
  }
  WriteFile(options.spec_path, R"({"mem_len": 33.0})");
  EXPECT_THAT(PlanConversion(options).status().message(),
              HasSubstr("spec.json: field mem_len must be an integer"));
}

TEST(PlanConversionTest, AMissingFileOrSpecIsNamed) {
  EXPECT_THAT(PlanConversion(Options("/no/such.pt")).status().message(),
              HasSubstr("/no/such.pt"));
  PlanOptions options = Options(NativeFile("kimi-char", "model.pt"));
  options.spec_path = "/no/spec.json";
  EXPECT_THAT(PlanConversion(options).status().message(),
              HasSubstr("/no/spec.json"));
}

ConversionPlan PlanOfPieces() {
  const StoredTensor whole = CountingTensor({4, 2});
  ConversionPlan plan;
  plan.tensors["layer.0.u"] = {{Rows(whole, 0, 1)}, 0};
  plan.tensors["layer.1.u"] = {{Rows(whole, 0, 1)}, 0};
  plan.tensors["layer.0.wq"] = {{Rows(whole, 1, 2), Rows(whole, 2, 4)}, 0};
  plan.tensors["pos.inv_freq"] = {{CountingTensor({5})}, 0};
  return plan;
}

TEST(UniqueParametersTest, CountsViewsOnceAndNoConstants) {
  EXPECT_EQ(UniqueParameters(PlanOfPieces()), 2 + 6);
}

TEST(PlannedInfosTest, AreTheShapesOfTheJoinedPieces) {
  const auto infos = PlannedInfos(PlanOfPieces());
  EXPECT_EQ(infos.size(), 4u);
  EXPECT_THAT(infos.at("layer.0.wq").shape, testing::ElementsAre(3, 2));
  EXPECT_EQ(infos.at("layer.0.wq").dtype, DType::kF32);
}

TEST(ConvertedConfigTest, IsReadableAndSaysFamilyContainerAndOrigins) {
  const auto conversion =
      PlanConversion(Options(NativeFile("kimi-char", "model_legacy.pt")));
  ASSERT_TRUE(conversion.ok()) << conversion.status();
  const std::string text = ConvertedConfig(*conversion);
  const auto config = ParseModelConfig(text, "config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(ModelConfigToJson(*config),
            ModelConfigToJson(conversion->plan.config));
  const json object = json::parse(text);
  EXPECT_EQ(object["family"], "kimiyoung");
  EXPECT_EQ(object["container"], "torch legacy");
  for (const auto& [field, origin] : object["origins"].items()) {
    EXPECT_TRUE(object.contains(field)) << field;
  }
  EXPECT_THAT(text, testing::Not(HasSubstr("golden")));  // no path
}

}  // namespace
}  // namespace txl
