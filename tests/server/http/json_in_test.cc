#include "server/http/json_in.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/http/http_options.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

// "MALFORMED_MESSAGE", "FIELD_INVALID a", "ok".
std::string Verdict(const absl::Status& status) {
  if (status.ok()) return "ok";
  const ErrorDetails details = GetErrorDetails(status);
  return details.field.empty()
             ? details.reason
             : absl::StrCat(details.reason, " ", details.field);
}

std::string Parse(const std::string& body) {
  return Verdict(ParseBody(body).status());
}

std::string Nested(int depth) {
  return absl::StrCat("{\"a\":", std::string(depth - 1, '['),
                      std::string(depth - 1, ']'), "}");
}

TEST(ParseBody, GivesTheObject) {
  EXPECT_EQ(*ParseBody(R"({"a": [1, "\u00e9", null], "b": {"c": 1.5}})"),
            Json({{"a", {1, "é", nullptr}}, {"b", {{"c", 1.5}}}}));
}

TEST(ParseBody, RefusesWhatIsNoJson) {
  for (const char* body : {"",
                           " ",
                           "{",
                           "}",
                           "{]",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{'a':1}",
                           "{\"a\":1} x",
                           "{} {}",
                           "{\"a\":NaN}",
                           "{\"a\":Infinity}",
                           "{\"a\":-inf}",
                           "{\"a\":0x10}",
                           "{\"a\":01}",
                           "{\"a\":+1}",
                           "{\"a\":.5}",
                           "{\"a\":1.}",
                           "{\"a\":tru}",
                           "// c\n{}",
                           "{/*c*/}",
                           "{\"a\":\"\t\"}",
                           "{\"a\":\"\\x41\"}",
                           "{\"a\":\"\\ud800\"}",
                           "{\"a\":\"\xff\"}",
                           "{\"a\":\"\xc0\xaf\"}",
                           "{\"a\":\"\xed\xa0\x80\"}",
                           "a=1&b=2",
                           "<a/>"}) {
    EXPECT_EQ(Parse(body), "MALFORMED_MESSAGE") << body;
  }
  EXPECT_EQ(Parse(std::string("{}\0", 3)), "MALFORMED_MESSAGE");
}

TEST(ParseBody, RefusesWhatIsNoObject) {
  for (const char* body : {"null", "1", "\"a\"", "[]", "[{}]", "true"}) {
    EXPECT_EQ(Parse(body), "MALFORMED_MESSAGE") << body;
  }
}

TEST(ParseBody, RefusesANumberThatNoDoubleHolds) {
  EXPECT_EQ(Parse("{\"a\":1e999}"), "MALFORMED_MESSAGE");
  EXPECT_EQ(Parse("{\"a\":-1e999}"), "MALFORMED_MESSAGE");
  EXPECT_EQ(Parse("{\"a\":1e308}"), "ok");
}

TEST(ParseBody, SaysThatABodyIsOfAnotherEncoding) {
  EXPECT_THAT(std::string(ParseBody("{\"a\": \"caf\xe9\"}").status().message()),
              HasSubstr("UTF-8"));
}

TEST(ParseBody, GoesAsDeepAsTheLimit) {
  EXPECT_EQ(Parse(Nested(kMaxJsonDepth)), "ok");
  EXPECT_EQ(Parse(Nested(kMaxJsonDepth + 1)), "MALFORMED_MESSAGE");
  EXPECT_THAT(ParseBody(Nested(9)).status().message(),
              ::testing::HasSubstr("deeper than 8"));
}

TEST(ParseBody, ComesToAnEndHoweverDeepABodyIs) {
  EXPECT_EQ(Parse(Nested(1 << 20)), "MALFORMED_MESSAGE");
  std::string open = "{\"a\":";
  for (int i = 0; i < 1 << 20; ++i) open += '[';
  EXPECT_EQ(Parse(open), "MALFORMED_MESSAGE");
  std::string objects;
  for (int i = 0; i < 1 << 18; ++i) objects += "{\"a\":";
  EXPECT_EQ(Parse(objects), "MALFORMED_MESSAGE");
}

TEST(ParseBody, TakesAsManyMembersAsTheLimit) {
  std::string members;
  for (size_t i = 0; i < kMaxJsonMembers; ++i) {
    members += "\"" + std::to_string(i) + "\":1,";
  }
  EXPECT_EQ(Parse("{\"o\":{" + members + "\"x\":1}}"), "MALFORMED_MESSAGE");
  members.pop_back();
  EXPECT_EQ(Parse("{\"o\":{" + members + "}}"), "ok");
  EXPECT_EQ(Parse("{" + members + "}"), "ok");
}

TEST(ParseBody, NamesAKeyThatStandsTwice) {
  EXPECT_EQ(Parse(R"({"a": 1, "b": 2, "a": 1})"), "FIELD_INVALID a");
  EXPECT_EQ(Parse(R"({"o": {"x": 1, "x": 2}})"), "FIELD_INVALID x");
  EXPECT_EQ(Parse(R"({"\u0061": 1, "a": 1})"), "FIELD_INVALID a");
  EXPECT_EQ(Parse(R"({"a": {"a": {"b": 1}}, "b": [{"a": 1}, {"a": 1}]})"),
            "ok");
}

TEST(BodyFields, AbsentAndNullFieldsHaveNoValue) {
  const Json body = {{"null", nullptr}};
  BodyFields fields(body);
  for (const char* name : {"null", "absent"}) {
    EXPECT_EQ(fields.Find(name), nullptr);
    EXPECT_FALSE(fields.Number(name)->has_value());
    EXPECT_FALSE(fields.Integer(name)->has_value());
    EXPECT_FALSE(fields.Bool(name)->has_value());
    EXPECT_FALSE(fields.String(name)->has_value());
    EXPECT_FALSE(fields.Ids(name)->has_value());
    EXPECT_TRUE(fields.Strings(name)->empty());
  }
}

TEST(BodyFields, GiveValuesOfTheirKind) {
  const Json body = Json::parse(
      R"({"n": 0.5, "i": -7, "one": 1.0, "b": true, "s": "x", "ids": [0, 7],
          "texts": ["a", "b"]})");
  BodyFields fields(body);
  EXPECT_EQ(**fields.Number("n"), 0.5);
  EXPECT_EQ(**fields.Number("i"), -7.0);
  EXPECT_EQ(**fields.Integer("i"), -7);
  EXPECT_EQ(**fields.Integer("one"), 1);
  EXPECT_TRUE(**fields.Bool("b"));
  EXPECT_EQ(**fields.String("s"), "x");
  EXPECT_THAT(**fields.Ids("ids"), ElementsAre(0, 7));
  EXPECT_THAT(*fields.Strings("texts"), ElementsAre("a", "b"));
  EXPECT_THAT(*fields.Strings("s"), ElementsAre("x"));
}

TEST(BodyFields, AListOfTextsHasALimit) {
  Json body = {{"stop", Json::array()}};
  for (size_t i = 0; i < kMaxJsonMembers; ++i) body["stop"].push_back("x");
  EXPECT_EQ(BodyFields(body).Strings("stop")->size(), kMaxJsonMembers);
  body["stop"].push_back("x");
  EXPECT_EQ(Verdict(BodyFields(body).Strings("stop").status()),
            "OVER_LIMIT stop");
}

TEST(BodyFields, NameAFieldOfAnotherKind) {
  const Json values = Json::parse(R"({"text": "1", "yes": true, "half": 0.5,
      "list": [1, 2], "object": {"a": 1}, "one": 1})");
  for (const auto& [kind, value] : values.items()) {
    const Json body = {{"f", value}};
    BodyFields fields(body);
    const auto expect = [&, k = kind](const absl::Status& status,
                                      std::vector<std::string> taken) {
      const bool ok = std::find(taken.begin(), taken.end(), k) != taken.end();
      EXPECT_EQ(Verdict(status), ok ? "ok" : "FIELD_INVALID f") << k;
    };
    expect(fields.Number("f").status(), {"half", "one"});
    expect(fields.Integer("f").status(), {"one"});
    expect(fields.Bool("f").status(), {"yes"});
    expect(fields.String("f").status(), {"text"});
    expect(fields.Ids("f").status(), {"list"});
    expect(fields.Strings("f").status(), {"text"});
  }
}

TEST(BodyFields, AnIntegerIsNeverWrapped) {
  for (const char* value :
       {"9223372036854775808", "18446744073709551615", "1e300",
        "18446744073709551616", "-1e19", "1e16", "-9223372036854775809"}) {
    const Json body = Json::parse(absl::StrCat("{\"f\":", value, "}"));
    BodyFields fields(body);
    EXPECT_EQ(Verdict(fields.Integer("f").status()), "FIELD_INVALID f")
        << value;
  }
  const Json body = Json::parse(
      R"({"most": 9223372036854775807, "least": -9223372036854775808})");
  BodyFields fields(body);
  EXPECT_EQ(**fields.Integer("most"), INT64_MAX);
  EXPECT_EQ(**fields.Integer("least"), INT64_MIN);
}

TEST(BodyFields, AnIntegerOutOfRangeIsSaidToBe) {
  const Json body = Json::parse(R"({"f": 18446744073709551616, "g": 1.5})");
  BodyFields fields(body);
  EXPECT_THAT(fields.Integer("f").status().message(),
              HasSubstr("out of range"));
  EXPECT_THAT(fields.Integer("g").status().message(),
              HasSubstr("whole number"));
}

TEST(BodyFields, IdsAreWholeAndFitIn32Bits) {
  for (const char* list :
       {"[-1]", "[4294967296]", "[1.5]", "[-1.0]", "[4294967296.0]", "[\"1\"]",
        "[null]", "[[1]]", "[true]"}) {
    const Json body = Json::parse(absl::StrCat("{\"f\":", list, "}"));
    BodyFields fields(body);
    EXPECT_EQ(Verdict(fields.Ids("f").status()), "FIELD_INVALID f[0]") << list;
  }
  for (const char* list : {"1", "{}"}) {
    const Json body = Json::parse(absl::StrCat("{\"f\":", list, "}"));
    BodyFields fields(body);
    EXPECT_EQ(Verdict(fields.Ids("f").status()), "FIELD_INVALID f") << list;
  }
  const Json body = Json::parse(R"({"f": [4294967295, 20.0], "none": []})");
  BodyFields fields(body);
  EXPECT_THAT(**fields.Ids("f"), ElementsAre(4294967295u, 20u));
  EXPECT_TRUE((**fields.Ids("none")).empty());
}

TEST(BodyFields, TextsAreTextsOnly) {
  for (const char* list : {"[1]", "[\"a\", null]", "[[\"a\"]]", "{}", "1"}) {
    const Json body = Json::parse(absl::StrCat("{\"f\":", list, "}"));
    BodyFields fields(body);
    EXPECT_EQ(Verdict(fields.Strings("f").status()), "FIELD_INVALID f") << list;
  }
}

TEST(BodyFields, KnowWhatNobodyHasRead) {
  const Json body = {{"a", 1}, {"b", 2}, {"c", nullptr}, {"d", 4}};
  BodyFields fields(body);
  fields.Find("b");
  EXPECT_TRUE(fields.Bool("absent").ok());
  EXPECT_THAT(fields.Unknown(), ElementsAre("a", "d"));
}

// What a request of these fields hears of another one.
std::string HeardOf(const std::string& name,
                    absl::Status (BodyFields::*check)() const) {
  Json body = {{name, 1}, {"max_tokens", 1}};
  BodyFields fields(body);
  for (const char* known : {"max_tokens", "stop", "seed", "n", "top_p"}) {
    fields.Find(known);
  }
  const absl::Status status = (fields.*check)();
  return status.ok() ? "" : std::string(status.message());
}

TEST(BodyFields, RefuseAnUnknownOneAndNameTheNearest) {
  const auto heard = [](const std::string& name) {
    return HeardOf(name, &BodyFields::RefuseUnknown);
  };
  EXPECT_EQ(heard("max_tokns"),
            "is not a field of this request; did you mean max_tokens?");
  EXPECT_EQ(heard("mirostat"),
            "is not a field of this request; its fields are max_tokens, n, "
            "seed, stop, top_p");
  EXPECT_EQ(heard("stop"), "");
}

TEST(BodyFields, RefuseAMisspeltOneAndLeaveOthersAlone) {
  const auto heard = [](const std::string& name) {
    return HeardOf(name, &BodyFields::RefuseMisspelt);
  };
  const std::pair<const char*, const char*> misspelt[] = {
      {"max_token", "max_tokens"}, {"max_tokens_", "max_tokens"},
      {"maxTokens", "max_tokens"}, {"MAX-TOKENS", "max_tokens"},
      {"mx_tokns", "max_tokens"},  {"stpo", "stop"},
      {"stops", "stop"},           {"sed", "seed"},
      {"topP", "top_p"},           {"N", "n"}};
  for (const auto& [name, meant] : misspelt) {
    EXPECT_THAT(heard(name), HasSubstr(absl::StrCat("did you mean ", meant)))
        << name;
  }
  // Names of other servers' fields among them.
  for (const char* other : {"store", "mirostat", "max_new_tokens", "k", "m",
                            "top_logprobs", "user", ""}) {
    EXPECT_EQ(heard(other), "") << other;
  }
  EXPECT_EQ(heard(std::string(100'000, 'a')), "");
}

TEST(BodyFields, OfAQueryAreSpeltAsTexts) {
  HttpRequest http;
  http.query = {{"whole", "True"}, {"part", "0"}, {"size", "-7"},
                {"text", ""},      {"one", "1"},  {"no", "FALSE"}};
  const auto query = QueryObject(http);
  ASSERT_TRUE(query.ok());
  BodyFields fields(*query, BodyFields::Spelling::kText);
  EXPECT_EQ(**fields.Bool("whole"), true);
  EXPECT_EQ(**fields.Bool("one"), true);
  EXPECT_EQ(**fields.Bool("part"), false);
  EXPECT_EQ(**fields.Bool("no"), false);
  EXPECT_EQ(**fields.Integer("size"), -7);
  EXPECT_EQ(**fields.String("text"), "");
  EXPECT_FALSE(fields.Integer("absent")->has_value());
}

TEST(BodyFields, OfAQueryThatMeanNothingAreRefused) {
  for (const char* text : {"", " 1", "1 ", "+1", "0x1", "1e3", "1.0", "-",
                           "--1", "one", "99999999999999999999"}) {
    HttpRequest http;
    http.query = {{"f", text}};
    const auto query = QueryObject(http);
    BodyFields fields(*query, BodyFields::Spelling::kText);
    EXPECT_EQ(Verdict(fields.Integer("f").status()), "FIELD_INVALID f") << text;
  }
  for (const char* text : {"", "yes", "2", "t", "true "}) {
    HttpRequest http;
    http.query = {{"f", text}};
    const auto query = QueryObject(http);
    BodyFields fields(*query, BodyFields::Spelling::kText);
    EXPECT_EQ(Verdict(fields.Bool("f").status()), "FIELD_INVALID f") << text;
  }
}

TEST(QueryObject, RefusesWhatStandsTwiceOrIsNotText) {
  HttpRequest http;
  http.query = {{"a", "1"}, {"a", "1"}};
  EXPECT_EQ(Verdict(QueryObject(http).status()), "FIELD_INVALID a");
  http.query = {{"a", "\xff"}};
  EXPECT_EQ(Verdict(QueryObject(http).status()), "FIELD_INVALID a");
}

}  // namespace
}  // namespace txl
