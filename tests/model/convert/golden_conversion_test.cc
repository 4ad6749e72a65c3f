// The native files of the golden cases become the canonical tensors, and the
// fields say what the case runs with.

#include "tests/model/convert/golden_conversion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>

#include "model/config/model_config.h"

namespace txl {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct NativeCase {
  const char* golden_case;
  const char* file;
  const char* family;
  // Fields that differ from the case without a spec: its files hold values of
  // training or none at all.
  std::vector<std::string> not_in_file;
};

void PrintTo(const NativeCase& value, std::ostream* out) {
  *out << value.golden_case << " " << value.file;
}

const std::vector<std::string> kNothing = {"mem_len", "window"};

const NativeCase kNativeCases[] = {
    {"kimi-char", "model.pt", "kimiyoung", {}},
    {"kimi-char", "model_legacy.pt", "kimiyoung", {}},
    {"kimi-char", "model_torch10.pt", "kimiyoung", {}},
    {"kimi-char", "state_dict.pt", "kimiyoung", kNothing},
    {"kimi-char-embproj", "model.pt", "kimiyoung", {}},
    {"kimi-prelnorm", "model.pt", "kimiyoung", {"tie_projs"}},
    {"kimi-samelength-clamp",
     "model.pt",
     "kimiyoung",
     {"mem_len", "window", "clamp_len"}},
    {"kimi-shaw", "model.pt", "kimiyoung", {"mem_len"}},
    {"kimi-shaw", "state_dict.pt", "kimiyoung", kNothing},
    {"kimi-shaw-clamp", "model.pt", "kimiyoung", {}},
    {"kimi-adaptive-div1", "model.pt", "kimiyoung", {}},
    {"kimi-adaptive-div2", "model.pt", "kimiyoung", {}},
    {"kimi-adaptive-div2", "state_dict.pt", "kimiyoung", kNothing},
    {"nvidia-2019", "checkpoint_best.pt", "kimiyoung", {}},
    {"nvidia-adaptive",
     "checkpoint_best.pt",
     "nvidia",
     {"mem_len", "window", "clamp_len"}},
    {"nvidia-div1", "checkpoint_best.pt", "nvidia", {}},
    {"hf-adaptive", "pytorch_model.bin", "huggingface", {}},
    {"hf-adaptive", "pytorch_model_zip.bin", "huggingface", {}},
    {"hf-adaptive", "model.safetensors", "huggingface", {}},
    {"hf-prelnorm-tied-r", "pytorch_model.bin", "huggingface", {}},
    {"hf-prelnorm-tied-r", "model.safetensors", "huggingface", {}},
    {"ptb-blog", "state_dict.pt", "ptb-article", kNothing},
    {"cpw", "ep_170.pth.tar", "compound-word", {}},
    {"musicautobot", "music.pth", "fastai", {}},
};

std::string TestName(const testing::TestParamInfo<NativeCase>& info) {
  std::string name =
      std::string(info.param.golden_case) + "_" + info.param.file;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !isalnum(c); },
      '_');
  return name;
}

class GoldenConversionTest : public testing::TestWithParam<NativeCase> {
 protected:
  std::string Source() const {
    return NativeFile(GetParam().golden_case, GetParam().file);
  }
  // A folder of this test alone.
  std::string Folder(const char* purpose) const {
    std::string name = std::string(GetParam().golden_case) + "_" +
                       GetParam().file + "_" + purpose;
    return FreshFolder(name);
  }
  // emb_proj_bin0 null means no projection anywhere, as absent does.
  std::vector<std::string> With(std::vector<std::string> fields) const {
    fields.push_back("emb_proj_bin0");
    return fields;
  }
};

TEST_P(GoldenConversionTest, WithTheSpecTensorsAndFieldsAreTheCases) {
  const std::string folder = Folder("spec");
  const auto report =
      ConvertTo(folder, Source(), GoldenSpec(GetParam().golden_case));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->conversion.plan.family, GetParam().family);
  ExpectGoldenTensors(folder + "/model", GetParam().golden_case);
  ExpectGoldenFields(folder + "/model", GetParam().golden_case, With({}));
}

TEST_P(GoldenConversionTest, WithoutASpecTheFileSpeaksForItself) {
  const std::string folder = Folder("own");
  const auto report = ConvertTo(folder, Source(), "");
  ASSERT_TRUE(report.ok()) << report.status();
  ExpectGoldenTensors(folder + "/model", GetParam().golden_case);
  ExpectGoldenFields(folder + "/model", GetParam().golden_case,
                     With(GetParam().not_in_file));
}

TEST_P(GoldenConversionTest, ConvertingAgainGivesTheSameBytes) {
  const std::string a = Folder("a"), b = Folder("b");
  ASSERT_TRUE(ConvertTo(a, Source(), "").ok());
  ASSERT_TRUE(ConvertTo(b, Source(), "").ok());
  for (const char* file : {"/model/config.json", "/model/model.safetensors"}) {
    EXPECT_TRUE(FileText(a + file) == FileText(b + file)) << file;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenConversionTest,
                         testing::ValuesIn(kNativeCases), TestName);

TEST(GoldenConversionContainersTest, TwoContainersGiveTheSameTensors) {
  std::string first;
  for (const char* file :
       {"pytorch_model.bin", "pytorch_model_zip.bin", "model.safetensors"}) {
    const std::string here = FreshFolder(std::string("containers_") + file);
    ASSERT_TRUE(ConvertTo(here, NativeFile("hf-adaptive", file), "").ok());
    const std::string bytes = FileText(here + "/model/model.safetensors");
    if (first.empty()) first = bytes;
    EXPECT_TRUE(bytes == first) << file;
  }
}

TEST(GoldenConversionFieldsTest, ValuesOfTrainingAreTheFilesWithoutASpec) {
  const std::string folder = FreshFolder("training");
  ASSERT_TRUE(
      ConvertTo(folder, NativeFile("nvidia-adaptive", "checkpoint_best.pt"), "")
          .ok());
  const auto config =
      ParseModelConfig(FileText(folder + "/model/config.json"), "config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  // model_config says mem_len 8, same_length false, clamp_len -1.
  EXPECT_EQ(config->mem_len, 8);
  EXPECT_FALSE(config->window.has_value());
  EXPECT_FALSE(config->clamp_len.has_value());
}

// The field "window" of a conversion of nvidia-div1, whose file says
// same_length with mem_len 13, under a spec.
json WindowUnder(const std::string& spec, const std::string& golden_case,
                 const std::string& file) {
  const std::string folder = FreshFolder("window");
  WriteFile(folder + "/spec.json", spec);
  const auto report =
      ConvertTo(folder, NativeFile(golden_case, file), folder + "/spec.json");
  EXPECT_TRUE(report.ok()) << report.status();
  return json::parse(FileText(folder + "/model/config.json"))["window"];
}

TEST(GoldenConversionFieldsTest, TheWindowFollowsAnotherMemory) {
  const char* const file = "checkpoint_best.pt";
  EXPECT_EQ(WindowUnder("{}", "nvidia-div1", file), 14);
  EXPECT_EQ(WindowUnder(R"({"mem_len": 30})", "nvidia-div1", file), 31);
  EXPECT_EQ(WindowUnder(R"({"mem_len": 30, "window": 9})", "nvidia-div1", file),
            9);
  EXPECT_EQ(
      WindowUnder(R"({"mem_len": 30, "window": null})", "nvidia-div1", file),
      json());
  EXPECT_EQ(WindowUnder(R"({"mem_len": 30})", "nvidia-2019", file), 30);
  EXPECT_EQ(
      WindowUnder(R"({"mem_len": 30})", "hf-adaptive", "pytorch_model.bin"),
      30);
  EXPECT_EQ(WindowUnder(R"({"mem_len": 30})", "cpw", "ep_170.pth.tar"), 30);
}

TEST(GoldenConversionFieldsTest, EveryFieldSaysWhoSaidIt) {
  const std::string folder = FreshFolder("origins");
  WriteFile(folder + "/spec.json", R"({"clamp_len": 7})");
  ASSERT_TRUE(ConvertTo(folder, NativeFile("kimi-samelength-clamp", "model.pt"),
                        folder + "/spec.json")
                  .ok());
  const json config = json::parse(FileText(folder + "/model/config.json"));
  EXPECT_EQ(config["family"], "kimiyoung");
  EXPECT_EQ(config["container"], "torch zip");
  const json& origins = config["origins"];
  EXPECT_EQ(origins["n_layer"], "weights");
  EXPECT_EQ(origins["tie_weight"], "weights");
  EXPECT_EQ(origins["clamp_len"], "spec");
  EXPECT_EQ(origins["mem_len"], "checkpoint");
  EXPECT_EQ(origins["norm"], "checkpoint");
  EXPECT_EQ(origins["act"], "family default");
  EXPECT_EQ(config["clamp_len"], 7);
}

TEST(GoldenConversionErrorsTest, ASpecThatContradictsTheWeightsIsNamed) {
  const std::string folder = FreshFolder("contradiction");
  for (const char* field : {"vocab_size", "n_layer", "n_head", "d_head",
                            "d_model", "d_embed", "d_inner", "div_val"}) {
    json spec = json::parse(FileText(GoldenSpec("kimi-adaptive-div2")));
    spec[field] = spec[field].get<int>() + 1;
    WriteFile(folder + "/spec.json", spec.dump());
    const auto report =
        ConvertTo(folder, NativeFile("kimi-adaptive-div2", "state_dict.pt"),
                  folder + "/spec.json");
    EXPECT_EQ(report.status().code(), absl::StatusCode::kInvalidArgument)
        << field;
    EXPECT_THAT(report.status().message(),
                HasSubstr(std::string("field ") + field));
  }
}

TEST(GoldenConversionErrorsTest, CutoffsThatNobodyKnowsAreAskedFor) {
  const std::string folder = FreshFolder("cutoffs");
  const auto report =
      ConvertTo(folder, NativeFile("kimi-adaptive-div1", "state_dict.pt"), "");
  EXPECT_EQ(report.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(report.status().message(), HasSubstr("cutoffs"));
  EXPECT_THAT(report.status().message(), HasSubstr("--spec"));
}

TEST(GoldenConversionErrorsTest, AStateDictTakesItsCutoffsFromTheSpec) {
  const std::string folder = FreshFolder("cutoffs_spec");
  const auto report =
      ConvertTo(folder, NativeFile("kimi-adaptive-div1", "state_dict.pt"),
                GoldenSpec("kimi-adaptive-div1"));
  ASSERT_TRUE(report.ok()) << report.status();
  ExpectGoldenTensors(folder + "/model", "kimi-adaptive-div1");
  ExpectGoldenFields(folder + "/model", "kimi-adaptive-div1", {});
}

TEST(GoldenConversionErrorsTest, AnotherFamilysFormatIsRefused) {
  ConvertOptions options;
  options.plan.source = NativeFile("kimi-char", "state_dict.pt");
  options.plan.format = "nvidia";
  options.directory = FreshFolder("format") + "/model";
  const auto nvidia = Convert(options);
  EXPECT_EQ(nvidia.status().code(), absl::StatusCode::kInvalidArgument);
  options.plan.format = "pdp-11";
  EXPECT_THAT(Convert(options).status().message(),
              testing::AllOf(HasSubstr("pdp-11"), HasSubstr("kimiyoung")));
}

TEST(GoldenConversionErrorsTest, AWeightThatIsNoNumberIsNamed) {
  const std::string folder = FreshFolder("nan");
  std::string file =
      FileText(NativeFile("hf-prelnorm-tied-r", "model.safetensors"));
  // The last bytes are of the last tensor; all ones is NaN.
  file.replace(file.size() - 4, 4, "\xff\xff\xff\xff");
  WriteFile(folder + "/model.safetensors", file);
  std::filesystem::copy_file(NativeFile("hf-prelnorm-tied-r", "config.json"),
                             folder + "/config.json");
  const auto report = ConvertTo(folder, folder + "/model.safetensors", "");
  EXPECT_EQ(report.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      report.status().message(),
      testing::AllOf(HasSubstr("model.safetensors: "), HasSubstr("NaN")));
  EXPECT_FALSE(std::filesystem::exists(folder + "/model"));
}

TEST(GoldenConversionErrorsTest, AnErrorLeavesNothingBehind) {
  const std::string folder = FreshFolder("nothing");
  ASSERT_FALSE(
      ConvertTo(folder, NativeFile("kimi-adaptive-div1", "state_dict.pt"), "")
          .ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace txl
