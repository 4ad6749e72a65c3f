#include "model/config/json_fields.h"

#include <cstdint>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace txl {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

std::string Message(const JsonFields& fields) {
  return std::string(fields.status().message());
}

TEST(JsonFields, ReadsEveryKind) {
  const json object = {{"int", -3},
                       {"big", std::numeric_limits<uint64_t>::max()},
                       {"number", 0.25},
                       {"yes", true},
                       {"text", "abc"},
                       {"ints", {1, 2}},
                       {"bools", {true, false}},
                       {"texts", {"a", " "}}};
  JsonFields in(object, "f.json");
  EXPECT_EQ(in.RequiredInt("int", -5, 5), -3);
  EXPECT_EQ(in.Int("int", 9, -5, 5), -3);
  EXPECT_EQ(in.OptionalUint64("big"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(in.Number("number", 1), 0.25);
  EXPECT_EQ(in.OptionalNumber("int"), -3.0);
  EXPECT_TRUE(in.Bool("yes", false));
  EXPECT_EQ(in.OptionalString("text"), "abc");
  EXPECT_THAT(in.IntList("ints", 0, 5), ElementsAre(1, 2));
  EXPECT_THAT(in.BoolList("bools"), ElementsAre(true, false));
  EXPECT_THAT(in.StringList("texts"), ElementsAre("a", " "));
  EXPECT_TRUE(in.status().ok());
}

TEST(JsonFields, AbsentAndNullGiveTheDefault) {
  const json object = {{"null", nullptr}};
  JsonFields in(object, "f.json");
  for (const char* field : {"null", "absent"}) {
    EXPECT_EQ(in.Int(field, 9, 0, 10), 9);
    EXPECT_EQ(in.OptionalInt(field, 0, 10), std::nullopt);
    EXPECT_EQ(in.OptionalUint64(field), std::nullopt);
    EXPECT_EQ(in.Number(field, 0.5), 0.5);
    EXPECT_TRUE(in.Bool(field, true));
    EXPECT_EQ(in.OptionalString(field), std::nullopt);
    EXPECT_THAT(in.IntList(field, 0, 10), IsEmpty());
    EXPECT_THAT(in.BoolList(field), IsEmpty());
    EXPECT_THAT(in.StringList(field), IsEmpty());
    EXPECT_EQ(in.Enum<int>(field, 4, {{"a", 1}}), 4);
  }
  EXPECT_TRUE(in.status().ok());
  EXPECT_TRUE(in.Has("null"));
  EXPECT_FALSE(in.Has("absent"));
}

TEST(JsonFields, BoundsAreInclusive) {
  const json object = {{"a", 3}};
  JsonFields in(object, "f.json");
  EXPECT_EQ(in.OptionalInt("a", 3, 3), 3);
  EXPECT_TRUE(in.status().ok());
  EXPECT_EQ(in.OptionalInt("a", 4, 10), std::nullopt);
  EXPECT_EQ(Message(in), "f.json: field a is 3, must be in [4, 10]");
}

TEST(JsonFields, IntegersBeyondInt64NeverWrapAround) {
  const json object = {{"a", std::numeric_limits<uint64_t>::max()}};
  JsonFields in(object, "f.json");
  EXPECT_EQ(in.OptionalInt("a", -10, kMax), std::nullopt);
  EXPECT_THAT(Message(in), HasSubstr("field a is 18446744073709551615"));
}

TEST(JsonFields, NegativeNumbersAreNoUint64) {
  const json object = {{"a", -1}};
  JsonFields in(object, "f.json");
  EXPECT_EQ(in.OptionalUint64("a"), std::nullopt);
  EXPECT_THAT(Message(in), HasSubstr("field a must be an integer in [0"));
}

TEST(JsonFields, NumbersAreFinite) {
  const json object = {{"a", std::numeric_limits<double>::infinity()}};
  JsonFields in(object, "f.json");
  EXPECT_EQ(in.Number("a", 2), 2);
  EXPECT_THAT(Message(in), HasSubstr("finite"));
}

TEST(JsonFields, TheFirstErrorStays) {
  const json object = {{"a", "x"}, {"b", "y"}};
  JsonFields in(object, "f.json");
  EXPECT_FALSE(in.Bool("a", false));
  EXPECT_EQ(in.Int("b", 1, 0, 2), 1);
  EXPECT_EQ(Message(in), "f.json: field a must be true or false");
}

TEST(JsonFields, WrongTypesInListsAreErrors) {
  const json object = {
      {"a", {1, "2"}}, {"b", {true, 0}}, {"c", {"x", 3}}, {"d", 4}};
  {
    JsonFields in(object, "f.json");
    EXPECT_THAT(in.IntList("a", 0, 5), IsEmpty());
    EXPECT_THAT(Message(in), HasSubstr("field a"));
  }
  {
    JsonFields in(object, "f.json");
    EXPECT_THAT(in.BoolList("b"), IsEmpty());
    EXPECT_THAT(Message(in), HasSubstr("field b"));
  }
  {
    JsonFields in(object, "f.json");
    EXPECT_THAT(in.StringList("c"), IsEmpty());
    EXPECT_THAT(Message(in), HasSubstr("field c"));
  }
  for (int kind = 0; kind < 3; ++kind) {
    JsonFields in(object, "f.json");
    if (kind == 0) in.IntList("d", 0, 5);
    if (kind == 1) in.BoolList("d");
    if (kind == 2) in.StringList("d");
    EXPECT_THAT(Message(in), HasSubstr("field d must be a list"));
  }
}

TEST(JsonFields, AnUnknownNameListsTheKnownOnes) {
  const json object = {{"a", "blue"}};
  JsonFields in(object, "f.json");
  EXPECT_EQ(in.Enum<int>("a", 7, {{"red", 1}, {"green", 2}}), 7);
  EXPECT_EQ(Message(in),
            "f.json: field a is \"blue\", must be one of red, green");
}

TEST(ParseJsonObject, RefusesAKeyThatStandsTwiceInOneObject) {
  EXPECT_THAT(
      std::string(
          ParseJsonObject(R"({"a": 1, "a": 1})", "f.json").status().message()),
      HasSubstr("f.json: has the key \"a\" twice"));
  EXPECT_FALSE(ParseJsonObject(R"({"x": {"a": 1, "a": 2}})", "f").ok());
  // The same key spelt with an escape is the same key.
  EXPECT_FALSE(ParseJsonObject(R"({"a": 1, "\u0061": 2})", "f").ok());
}

TEST(ParseJsonObject, AllowsAKeyInTwoObjects) {
  EXPECT_TRUE(
      ParseJsonObject(R"({"x": {"a": 1}, "y": {"a": 1}, "a": 2})", "f").ok());
}

TEST(ParseJsonObject, CountsTheDepth) {
  EXPECT_TRUE(ParseJsonObject(R"({"a": [[1]]})", "f", 3).ok());
  EXPECT_FALSE(ParseJsonObject(R"({"a": [[1]]})", "f", 1).ok());
}

}  // namespace
}  // namespace txl
