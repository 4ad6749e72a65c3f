// What every vocabulary's Encode promises of its token limit.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/text/symbol_vocabulary.h"
#include "model/text/vocabulary.h"
#include "tests/model/text/every_vocabulary.h"

namespace txl {
namespace {

using ::testing::IsEmpty;

TEST(TokenLimit, AsManyIdsAsAllowedAreGiven) {
  for (const NamedVocabulary& each : EveryVocabulary()) {
    const auto all = each.vocabulary->Encode(each.text);
    ASSERT_TRUE(all.ok()) << each.name << ": " << all.status();
    ASSERT_GT(all->size(), 8u) << each.name;
    const auto count = static_cast<int64_t>(all->size());
    EXPECT_EQ(*each.vocabulary->Encode(each.text, {.max_tokens = count}), *all)
        << each.name;
  }
}

TEST(TokenLimit, OneMoreIsOutOfRange) {
  for (const NamedVocabulary& each : EveryVocabulary()) {
    const auto all = each.vocabulary->Encode(each.text);
    ASSERT_TRUE(all.ok()) << each.name;
    const auto count = static_cast<int64_t>(all->size());
    for (const int64_t limit : {count - 1, count / 2, int64_t{0}}) {
      EXPECT_EQ(
          each.vocabulary->Encode(each.text, {.max_tokens = limit}).status(),
          absl::OutOfRangeError(absl::StrCat("more than ", limit, " tokens")))
          << each.name;
    }
  }
}

TEST(TokenLimit, NoTextNeedsNoRoom) {
  for (const NamedVocabulary& each : EveryVocabulary()) {
    const auto none = each.vocabulary->Encode("", {.max_tokens = 0});
    ASSERT_TRUE(none.ok()) << each.name;
    EXPECT_THAT(*none, IsEmpty()) << each.name;
  }
}

// Text behind the limit is not looked at: it would be refused otherwise.
TEST(TokenLimit, WorkEndsAtTheLimit) {
  int shown = 0;
  for (const NamedVocabulary& each : EveryVocabulary()) {
    const std::string refused = each.text + " \u0416";
    if (each.vocabulary->Encode(refused).ok()) continue;
    ++shown;
    EXPECT_EQ(each.vocabulary->Encode(refused).status().code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(
        each.vocabulary->Encode(refused, {.max_tokens = 5}).status().code(),
        absl::StatusCode::kOutOfRange)
        << each.name;
  }
  EXPECT_GE(shown, 3);
}

}  // namespace
}  // namespace txl
