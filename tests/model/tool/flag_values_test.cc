#include "model/tool/flag_values.h"

#include <gtest/gtest.h>

#include <string>

namespace txl {
namespace {

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

}  // namespace
}  // namespace txl
