#include "model/tool/model_flags.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "model/text/symbol_vocabulary.h"

namespace txl {
namespace {

TEST(ModelFlagsTest, DevicesAreNamed) {
  EXPECT_EQ(*ParseDevice("cpu"), c10::Device(c10::kCPU));
  EXPECT_EQ(ParseDevice("auto")->is_cuda(), at::hasCUDA());
}

TEST(ModelFlagsTest, UnknownDevicesNameTheFlag) {
  for (const char* name : {"", "gpu", "CPU"}) {
    const auto device = ParseDevice(name);
    EXPECT_EQ(device.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(device.status().message(), testing::HasSubstr("--device"));
  }
}

TEST(ModelFlagsTest, AGpuThatIsNotThereIsAnErrorNotACrash) {
  if (!at::hasCUDA()) {
    EXPECT_THAT(ParseDevice("cuda").status().message(),
                testing::HasSubstr("no GPU"));
  } else {
    EXPECT_TRUE(ParseDevice("cuda")->is_cuda());
  }
}

TEST(ModelFlagsTest, TheUnknownSymbolHasToBeThere) {
  SymbolRules rules;
  const SymbolVocabulary strict("symbols", {"a", "?"}, rules);
  rules.unknown_id = 1;
  const SymbolVocabulary lenient("symbols", {"a", "?"}, rules);
  EXPECT_FALSE(EncodeOptionsOf(strict, "")->skip_unknown);
  EXPECT_TRUE(EncodeOptionsOf(strict, "skip")->skip_unknown);
  EXPECT_TRUE(EncodeOptionsOf(lenient, "skip")->skip_unknown);
  EXPECT_FALSE(EncodeOptionsOf(lenient, "unk")->skip_unknown);
  const auto lacking = EncodeOptionsOf(strict, "unk");
  EXPECT_EQ(lacking.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(lacking.status().message(), testing::HasSubstr("--unknown"));
}

TEST(ModelFlagsTest, ASymbolOfTheVocabularyStandsForWhatHasNone) {
  SymbolRules rules;
  rules.split = SymbolSplit::kCharacters;
  const SymbolVocabulary letters("characters", {"a", "b", "?"}, rules);
  EXPECT_EQ(EncodeOptionsOf(letters, "?")->unknown_id, 2);
  for (const char* word : {"x", "ab"}) {
    EXPECT_THAT(EncodeOptionsOf(letters, word).status().message(),
                testing::HasSubstr("is not one symbol"))
        << word;
  }
}

TEST(ModelFlagsTest, ARefusedFileIsNamedWithTheCountOfEachPiece) {
  SymbolRules rules;
  rules.split = SymbolSplit::kCharacters;
  const SymbolVocabulary letters("characters", {"a", "b", "?"}, rules);
  const std::string path = testing::TempDir() + "/refused_text";
  std::ofstream(path) << "a\xC3\xA9x"
                      << "b\xC3\xA9";
  EXPECT_THAT(std::string(IdsOfFile(path, letters, "").status().message()),
              testing::AllOf(testing::StartsWith(path),
                             testing::HasSubstr("symbol: 3 (\"\xC3\xA9\" 2x, "
                                                "\"x\" 1x)")));
  EXPECT_EQ(*IdsOfFile(path, letters, "?"),
            (std::vector<int32_t>{0, 2, 2, 1, 2}));
}

TEST(ModelFlagsTest, AMissingDirectoryIsNamed) {
  ModelFlags flags = {.directory = "/no/such/model"};
  const auto model = OpenModelOf(flags);
  EXPECT_FALSE(model.ok());
  EXPECT_THAT(model.status().message(), testing::HasSubstr("/no/such/model"));
}

// What `--flag name` leaves in a value of type T; `*code` is the parser's.
template <typename T>
T Parsed(const NamesOf<T>& names, const std::string& name, int* code) {
  CLI::App app;
  T value = {};
  AddNamedFlag(app, "--flag", value, names, "");
  *code = 0;
  try {
    app.parse("--flag " + name);
  } catch (const CLI::ParseError& error) {
    *code = error.get_exit_code();
  }
  return value;
}

template <typename T>
void ExpectValue(const NamesOf<T>& names, const std::string& name, T expected) {
  int code = -1;
  EXPECT_EQ(Parsed(names, name, &code), expected) << name;
  EXPECT_EQ(code, 0) << name;
}

template <typename T>
void ExpectUnknown(const NamesOf<T>& names, const std::string& name) {
  int code = 0;
  Parsed(names, name, &code);
  EXPECT_NE(code, 0) << name;
}

TEST(FlagValuesTest, NormsAreNamedByTheirPlace) {
  ExpectValue(NormNames(), "pre", NormPlacement::kPre);
  ExpectValue(NormNames(), "post", NormPlacement::kPost);
  ExpectUnknown(NormNames(), "both");
}

TEST(FlagValuesTest, VocabulariesOfATextAreBytesOrCharacters) {
  ExpectValue(VocabularyNames(), "bytes", CorpusVocabulary::kBytes);
  ExpectValue(VocabularyNames(), "characters", CorpusVocabulary::kCharacters);
  ExpectUnknown(VocabularyNames(), "words");
}

TEST(FlagValuesTest, WeightsAreWrittenInFourTypes) {
  ExpectValue(DTypeNames(), "f64", c10::kDouble);
  ExpectValue(DTypeNames(), "f32", c10::kFloat);
  ExpectValue(DTypeNames(), "f16", c10::kHalf);
  ExpectValue(DTypeNames(), "bf16", c10::kBFloat16);
  ExpectUnknown(DTypeNames(), "int8");
}

TEST(FlagValuesTest, ArithmeticIsSingleOrDouble) {
  ExpectValue(ComputeNames(), "f32", c10::kFloat);
  ExpectValue(ComputeNames(), "f64", c10::kDouble);
  ExpectUnknown(ComputeNames(), "f16");
}

TEST(FlagValuesTest, HelpShowsDefaultsByName) {
  CLI::App app;
  c10::ScalarType dtype = c10::kBFloat16;
  const CLI::Option* flag =
      AddNamedFlag(app, "--dtype", dtype, DTypeNames(), "of the weights");
  EXPECT_EQ(flag->get_default_str(), "bf16");
  app.parse("");
  EXPECT_EQ(dtype, c10::kBFloat16);
}

using testing::HasSubstr;

// What the flags hold after `arguments`; the error's exit code in `code`.
FormatFlags Parse(const std::string& arguments, int* code) {
  CLI::App app;
  FormatFlags flags;
  AddFormatFlags(app, flags);
  *code = 0;
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    *code = error.get_exit_code();
  }
  return flags;
}

TEST(FormatFlagsTest, AreF32InTheCheaperFormUnlessNamed) {
  const NativeFormats formats = FormatsOf({});
  EXPECT_FALSE(formats.form.has_value());
  EXPECT_EQ(formats.weights, NumberFormat::kF32);
  EXPECT_EQ(formats.memory, NumberFormat::kF32);
  EXPECT_EQ(formats.derived, NumberFormat::kF32);
  EXPECT_EQ(formats.products, Products::kFloat);
}

TEST(FormatFlagsTest, EachNameIsItsFormat) {
  int code = 0;
  const NativeFormats formats =
      FormatsOf(Parse("--weights int8 --memory f16 --derived bf16", &code));
  EXPECT_EQ(code, 0);
  EXPECT_EQ(formats.weights, NumberFormat::kInt8);
  EXPECT_EQ(formats.memory, NumberFormat::kF16);
  EXPECT_EQ(formats.derived, NumberFormat::kBF16);
  EXPECT_EQ(FormatsOf(Parse("--weights int4", &code)).weights,
            NumberFormat::kInt4);
  EXPECT_EQ(FormatsOf(Parse("--products int8", &code)).products,
            Products::kInteger);
}

TEST(FormatFlagsTest, AFormCanBeForced) {
  int code = 0;
  EXPECT_EQ(FormatsOf(Parse("--form projected", &code)).form,
            AttentionForm::kProjected);
  EXPECT_EQ(FormatsOf(Parse("--form absorbed", &code)).form,
            AttentionForm::kAbsorbed);
  EXPECT_FALSE(FormatsOf(Parse("--form auto", &code)).form.has_value());
  EXPECT_EQ(code, 0);
}

TEST(FormatFlagsTest, NamesMayBeInAnyCase) {
  int code = 0;
  EXPECT_EQ(FormatsOf(Parse("--memory F16", &code)).memory, NumberFormat::kF16);
  EXPECT_EQ(code, 0);
}

TEST(FormatFlagsTest, UnknownNamesAreUsage) {
  for (const char* arguments :
       {"--memory int4", "--derived i8", "--weights q8", "--products int16",
        "--memory f17", "--form cheap", "--vector-target 8087"}) {
    int code = 0;
    Parse(arguments, &code);
    EXPECT_NE(code, 0) << arguments;
  }
}

TEST(FormatFlagsTest, TheVectorTargetIsOneOfTheMachine) {
  int code = 0;
  const std::string plainest = VectorTargets().back();
  EXPECT_EQ(Parse("--vector-target auto", &code).vector_target, "auto");
  EXPECT_EQ(Parse("--vector-target " + plainest, &code).vector_target,
            plainest);
  EXPECT_EQ(code, 0);
}

TEST(RequireDefaultsTest, NamesTheFlagAndItsValue) {
  EXPECT_TRUE(RequireDefaults({}, "more").ok());
  EXPECT_EQ(RequireDefaults({.weights = "int8"}, "more").message(),
            "--weights: int8 needs more");
  EXPECT_THAT(RequireDefaults({.memory = "f16"}, "more").message(),
              HasSubstr("--memory: f16"));
  EXPECT_THAT(RequireDefaults({.derived = "bf16"}, "more").message(),
              HasSubstr("--derived: bf16"));
  EXPECT_THAT(RequireDefaults({.form = "absorbed"}, "more").message(),
              HasSubstr("--form: absorbed"));
  EXPECT_THAT(RequireDefaults({.vector_target = "AVX2"}, "more").message(),
              HasSubstr("--vector-target: AVX2"));
}

}  // namespace

}  // namespace txl
