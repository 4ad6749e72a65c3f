// Every field with a range: both bounds, what lies just outside of them, and
// the values that arithmetic is known to stumble over.

#include <google/protobuf/descriptor.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/substitute.h"
#include "server/api/convert_input.h"
#include "tests/server/api/convert_fixture.h"

namespace txl {
namespace {

// A field of real numbers.
struct RealField {
  const char* request;  // $0: the value
  const char* field;
  double least;
  double most;
  bool least_is_in;
};

constexpr RealField kReals[] = {
    {"sampling { temperature: $0 }", "sampling.temperature", 0, 100, true},
    {"sampling { top_p: $0 }", "sampling.top_p", 0, 1, false},
    {"sampling { min_p: $0 }", "sampling.min_p", 0, 1, true},
    {"sampling { typical_p: $0 }", "sampling.typical_p", 0, 1, false},
    {"sampling { repetition_penalty: $0 }", "sampling.repetition_penalty", 0,
     10, false},
    {"sampling { presence_penalty: $0 }", "sampling.presence_penalty", -2, 2,
     true},
    {"sampling { frequency_penalty: $0 }", "sampling.frequency_penalty", -2, 2,
     true},
};

std::string Generate(const std::string& request) {
  return Refusal(ReadGenerate(FromText<v1::GenerateRequest>(request),
                              ByteModel(), RequestLimits()));
}

TEST(FieldTable, RealNumbers) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const RealField& row : kReals) {
    for (const double value :
         {row.least, std::nextafter(row.least, -kInfinity),
          std::nextafter(row.least, kInfinity), row.most,
          std::nextafter(row.most, kInfinity), 0.0, -0.0,
          std::numeric_limits<double>::max(),
          std::numeric_limits<double>::lowest(),
          std::numeric_limits<double>::denorm_min(), kInfinity, -kInfinity,
          std::numeric_limits<double>::quiet_NaN()}) {
      const bool legal =
          value <= row.most &&
          (row.least_is_in ? value >= row.least : value > row.least);
      EXPECT_EQ(
          Generate(
              absl::Substitute(row.request, absl::StrFormat("%.17g", value))),
          legal ? "OK"
                : absl::StrCat("INVALID_ARGUMENT FIELD_INVALID ", row.field))
          << value;
    }
  }
}

// A field of whole numbers, of the type that holds [type_least, type_most].
struct WholeField {
  const char* request;
  const char* field;
  int64_t least;
  int64_t most;
  uint64_t type_most;
  const char* above;  // the reason of what is too much
};

constexpr uint64_t kInt32 = 0x7fffffff;
constexpr uint64_t kInt64 = 0x7fffffffffffffff;
constexpr uint64_t kUint32 = 0xffffffff;

constexpr WholeField kWholes[] = {
    {"sampling { top_k: $0 }", "sampling.top_k", 0, 256, kInt64,
     "FIELD_INVALID"},
    {"sampling { penalty_window: $0 }", "sampling.penalty_window", 0, 4096,
     kInt32, "FIELD_INVALID"},
    {"sampling { min_tokens: $0 }", "sampling.min_tokens", 0, 128, kInt32,
     "FIELD_INVALID"},
    {"stop { max_tokens: $0 }", "stop.max_tokens", 1, 4096, kInt32,
     "OVER_LIMIT"},
    {"output { logprobs: $0 }", "output.logprobs", 0, 20, kUint32,
     "OVER_LIMIT"},
    {"output { max_tokens_per_message: $0 }", "output.max_tokens_per_message",
     1, 1024, kUint32, "OVER_LIMIT"},
    {"expected_position: $0", "expected_position", 0,
     std::numeric_limits<int64_t>::max(), kInt64, ""},
    {"stop { stop_token_ids: $0 }", "stop.stop_token_ids[0]", 0, 255, kUint32,
     "FIELD_INVALID"},
    {"stop { token_count { id: $0 count: 1 } }", "stop.token_count.id", 0, 255,
     kUint32, "FIELD_INVALID"},
    {"stop { token_count { id: 1 count: $0 } }", "stop.token_count.count", 1,
     kInt32, kInt32, ""},
    {"sampling { allowed_token_ids: $0 }", "sampling.allowed_token_ids[0]", 0,
     255, kUint32, "FIELD_INVALID"},
    {"output { logprob_token_ids: $0 }", "output.logprob_token_ids[0]", 0, 255,
     kUint32, "FIELD_INVALID"},
    {"tokens { ids: $0 }", "tokens.ids[0]", 0, 255, kUint32, "FIELD_INVALID"},
    {"received { token_ids: $0 }", "received.token_ids[0]", 0, 255, kUint32,
     "FIELD_INVALID"},
};

TEST(FieldTable, WholeNumbers) {
  for (const WholeField& row : kWholes) {
    const bool is_signed = row.type_most != kUint32;
    const auto type_most = static_cast<int64_t>(row.type_most);
    const int64_t type_least = is_signed ? -type_most - 1 : 0;
    for (const int64_t value :
         {row.least, row.least - 1, row.most, row.most - 1,
          row.most == type_most ? row.most : row.most + 1, int64_t{0},
          int64_t{-1}, type_least, type_most}) {
      if (value < type_least || value > type_most) continue;
      std::string expected = "OK";
      if (value < row.least) {
        expected = absl::StrCat("INVALID_ARGUMENT FIELD_INVALID ", row.field);
      } else if (value > row.most) {
        expected = absl::StrCat("INVALID_ARGUMENT ", row.above, " ", row.field);
      }
      EXPECT_EQ(Generate(absl::Substitute(row.request, value)), expected)
          << row.request << " " << value;
    }
  }
}

TEST(FieldTable, EverySeedIsLegal) {
  for (const uint64_t seed :
       {uint64_t{0}, uint64_t{1}, std::numeric_limits<uint64_t>::max()}) {
    EXPECT_EQ(Generate(absl::StrCat("sampling { seed: ", seed, " }")), "OK");
  }
}

TEST(FieldTable, TextsByTheirBytes) {
  const std::string limit(64, 'a');
  for (const char* field : {"session_id", "request_id"}) {
    const auto request = [&](const std::string& value) {
      return Generate(absl::StrCat(field, ": \"", value, "\""));
    };
    EXPECT_EQ(request(""), "OK");  // as an absent one
    EXPECT_EQ(request("a"), "OK");
    EXPECT_EQ(request(limit), "OK");
    const std::string refusal =
        absl::StrCat("INVALID_ARGUMENT FIELD_INVALID ", field);
    for (const std::string& bad :
         {limit + "a", std::string("a b"), std::string("a.b"),
          std::string("\\000"), std::string("\303\251")}) {
      EXPECT_EQ(request(bad), refusal) << bad;
    }
  }
  const auto stop = [](size_t bytes) {
    return Generate(
        absl::StrCat("stop { stop_texts: '", std::string(bytes, 'a'), "' }"));
  };
  EXPECT_EQ(stop(0), "INVALID_ARGUMENT FIELD_INVALID stop.stop_texts[0]");
  EXPECT_EQ(stop(256), "OK");
  EXPECT_EQ(stop(257), "INVALID_ARGUMENT OVER_LIMIT stop.stop_texts[0]");
}

TEST(FieldTable, TheLogprobsOfScore) {
  for (const auto& [value, expected] :
       std::vector<std::pair<const char*, const char*>>{
           {"0", "OK"},
           {"20", "OK"},
           {"21", "INVALID_ARGUMENT OVER_LIMIT logprobs"},
           {"4294967295", "INVALID_ARGUMENT OVER_LIMIT logprobs"}}) {
    EXPECT_EQ(Refusal(ReadScore(FromText<v1::ScoreRequest>(absl::StrCat(
                                    "text: 'a' logprobs: ", value)),
                                ByteModel(), RequestLimits())),
              expected);
  }
}

TEST(FieldTable, TheTimeToLiveNeverOverflows) {
  constexpr int64_t kMost = 315'576'000'000;
  for (const auto& [ttl, legal] : std::vector<std::pair<std::string, bool>>{
           {absl::StrCat("seconds: ", kMost), true},
           {absl::StrCat("seconds: ", kMost + 1), false},
           {absl::StrCat("seconds: -", kMost), true},
           {absl::StrCat("seconds: ", kInt64), false},
           {absl::StrCat("seconds: -", kInt64), false},
           {"nanos: 999999999", true},
           {"nanos: 1000000000", false},
           {"nanos: -2147483648", false},
           {"seconds: 1 nanos: -1", false}}) {
    EXPECT_EQ(Refusal(ReadTtl(FromText<v1::CreateSessionRequest>(
                  absl::StrCat("ttl { ", ttl, " }")))),
              legal ? "OK" : "INVALID_ARGUMENT FIELD_INVALID ttl")
        << ttl;
  }
}

TEST(FieldTable, ThePageOfASession) {
  for (const auto& [page, from, count] :
       std::vector<std::tuple<std::string, int64_t, int64_t>>{
           {"", 0, kTokenPage},
           {"page_size: 1", 0, 1},
           {absl::StrCat("page_size: ", kTokenPage), 0, kTokenPage},
           {absl::StrCat("page_size: ", kInt32), 0, kTokenPage},
           {absl::StrCat("start_position: ", kInt64),
            static_cast<int64_t>(kInt64), kTokenPage},
           {absl::StrCat("page_token: '", TokenPageToken(7), "'"), 7,
            kTokenPage}}) {
    const auto range = ReadTokenRange(FromText<v1::GetSessionRequest>(page));
    ASSERT_TRUE(range.ok()) << page;
    EXPECT_EQ(range->from, from) << page;
    EXPECT_EQ(range->count, count) << page;
  }
}

void ExpectCheckedEnums(const google::protobuf::Descriptor& message) {
  for (int i = 0; i < message.field_count(); ++i) {
    const auto& field = *message.field(i);
    if (field.enum_type() != nullptr) {
      EXPECT_EQ(field.enum_type(), v1::UnknownText_descriptor())
          << field.full_name();
    }
    if (field.message_type() != nullptr) {
      ExpectCheckedEnums(*field.message_type());
    }
  }
}

// An unlisted number of an enum is a legal message, so that each needs a check:
// unknown_text_test.cc has that of this one.
TEST(FieldTable, NoRequestHasAnotherEnumThanUnknownText) {
  ExpectCheckedEnums(*v1::GenerateRequest::descriptor());
  ExpectCheckedEnums(*v1::ScoreRequest::descriptor());
  ExpectCheckedEnums(*v1::ScoreAlternativesRequest::descriptor());
  ExpectCheckedEnums(*v1::AppendTokensRequest::descriptor());
  ExpectCheckedEnums(*v1::CreateSessionRequest::descriptor());
  ExpectCheckedEnums(*v1::GetSessionRequest::descriptor());
  ExpectCheckedEnums(*v1::ListSessionsRequest::descriptor());
  ExpectCheckedEnums(*v1::DeleteSessionRequest::descriptor());
  ExpectCheckedEnums(*v1::TokenizeRequest::descriptor());
  ExpectCheckedEnums(*v1::DetokenizeRequest::descriptor());
}

}  // namespace
}  // namespace txl
