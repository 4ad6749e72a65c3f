#include "model/tool/number_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace txl {
namespace {

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
        "--memory f17", "--form cheap"}) {
    int code = 0;
    Parse(arguments, &code);
    EXPECT_NE(code, 0) << arguments;
  }
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
}

}  // namespace
}  // namespace txl
