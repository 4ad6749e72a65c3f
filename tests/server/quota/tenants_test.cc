#include "server/quota/tenants.h"

#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace txl {
namespace {

constexpr absl::Duration kAnyTime = absl::Seconds(50);

class TenantsTest : public ::testing::Test {
 protected:
  static TenantLimits Weight(double weight) {
    TenantLimits limits;
    limits.weight = weight;
    return limits;
  }

  std::vector<std::string> counted_;
  Tenants tenants_{[this](const std::string& name) {
    counted_.push_back(name);
    return static_cast<int32_t>(counted_.size()) - 1;
  }};
};

TEST_F(TenantsTest, OnlyThoseOfTheFileHaveCountersOfTheirOwn) {
  tenants_.SetLimits({{"a", Weight(2)}, {"b", Weight(3)}}, kAnyTime);
  EXPECT_EQ(tenants_.Find("b", kAnyTime)->weight(), 3);
  EXPECT_EQ(tenants_.Find("x", kAnyTime)->weight(), 1);
  EXPECT_EQ(tenants_.Find("y", kAnyTime)->counts(), 0);
  EXPECT_EQ(tenants_.Find("x", kAnyTime)->counts(), 0);
  EXPECT_EQ(counted_, (std::vector<std::string>{"other", "a", "b"}));
  EXPECT_EQ(tenants_.Find("b", kAnyTime)->counts(), 2);
}

TEST_F(TenantsTest, AnAccountStaysTheSame) {
  TenantAccount* const x = tenants_.Find("x", kAnyTime);
  tenants_.SetLimits({{"x", Weight(4)}}, kAnyTime);
  EXPECT_EQ(tenants_.Find("x", kAnyTime), x);
  EXPECT_EQ(x->weight(), 4);
  EXPECT_EQ(x->name(), "x");
}

TEST_F(TenantsTest, WhoEntersTheFileLaterIsCountedApartFromThen) {
  TenantAccount* const x = tenants_.Find("x", kAnyTime);
  EXPECT_EQ(x->counts(), 0);
  tenants_.SetLimits({{"x", Weight(1)}}, kAnyTime);
  EXPECT_EQ(x->counts(), 1);
  tenants_.SetLimits({}, kAnyTime);
  tenants_.SetLimits({{"x", Weight(1)}}, kAnyTime);
  EXPECT_EQ(x->counts(), 1);
  EXPECT_EQ(counted_, (std::vector<std::string>{"other", "x"}));
}

TEST_F(TenantsTest, AllThatAreInTheFileOrHaveCalledSayWhatTheyHaveTaken) {
  tenants_.SetLimits({{"b", Weight(3)}}, kAnyTime);
  ASSERT_TRUE(tenants_.Find("a", kAnyTime)->StartTurn(1, kAnyTime).ok());
  const std::vector<TenantUse> all = tenants_.Use(kAnyTime);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].tenant, "a");
  EXPECT_EQ(all[0].turns, 1);
  EXPECT_EQ(all[1].tenant, "b");
  EXPECT_EQ(all[1].limits.weight, 3);
}

TEST_F(TenantsTest, WhoLeavesTheFileLosesItsLimits) {
  TenantLimits limits;
  limits.turns = 1;
  tenants_.SetLimits({{"a", limits}}, kAnyTime);
  TenantAccount* const a = tenants_.Find("a", kAnyTime);
  ASSERT_TRUE(a->StartTurn(1, kAnyTime).ok());
  EXPECT_FALSE(a->StartTurn(1, kAnyTime).ok());
  tenants_.SetLimits({}, kAnyTime);
  EXPECT_TRUE(a->StartTurn(1, kAnyTime).ok());
  tenants_.SetLimits({{"a", limits}}, kAnyTime);
  a->EndTurn();
  EXPECT_FALSE(a->StartTurn(1, kAnyTime).ok());
}

std::string Error(const std::string& text) {
  return std::string(ParseTenants(text, "F").status().message());
}

// The error of one key of tenant a.
std::string KeyError(const std::string& line) {
  const std::string error = Error("[tenant.a]\n" + line);
  const std::string prefix = "F: tenant.a.";
  EXPECT_EQ(error.substr(0, prefix.size()), prefix);
  return error.substr(std::min(error.size(), prefix.size()));
}

TEST(TenantsFile, EveryKeyIsRead) {
  const auto tenants = ParseTenants(R"(
[tenant.research]
weight = 2.5
turns = 8
sessions = 1000
bytes = 1048576
tokens_in_per_minute = 60000
count_cached_tokens = true
tokens_out_per_minute = 12000
calls_per_second = 50
longest_turn = "1m30s"

[tenant.web-1]
)",
                                    "F");
  ASSERT_TRUE(tenants.ok()) << tenants.status();
  ASSERT_EQ(tenants->size(), 2u);
  const TenantLimits& limits = tenants->at("research");
  EXPECT_EQ(limits.weight, 2.5);
  EXPECT_EQ(limits.turns, 8);
  EXPECT_EQ(limits.sessions, 1000);
  EXPECT_EQ(limits.bytes, 1 << 20);
  EXPECT_EQ(limits.tokens_in_per_minute, 60000);
  EXPECT_TRUE(limits.count_cached_tokens);
  EXPECT_EQ(limits.tokens_out_per_minute, 12000);
  EXPECT_EQ(limits.calls_per_second, 50);
  EXPECT_EQ(limits.longest_turn, absl::Seconds(90));
  const TenantLimits& none = tenants->at("web-1");
  EXPECT_EQ(none.weight, 1);
  EXPECT_FALSE(none.count_cached_tokens);
  EXPECT_FALSE(none.turns.has_value());
  EXPECT_FALSE(none.sessions.has_value());
  EXPECT_FALSE(none.bytes.has_value());
  EXPECT_FALSE(none.longest_turn.has_value());
}

TEST(TenantsFile, AnEmptyFileHasNoTenants) {
  EXPECT_TRUE(ParseTenants("", "F")->empty());
  EXPECT_TRUE(ParseTenants("# nobody\n", "F")->empty());
}

TEST(TenantsFile, AWeightMayBeWhole) {
  const auto tenants = ParseTenants("[tenant.a]\nweight = 4\n", "F");
  ASSERT_TRUE(tenants.ok()) << tenants.status();
  EXPECT_EQ(tenants->at("a").weight, 4);
}

TEST(TenantsFile, WholeNumbersAreReadAsThoseOfFlags) {
  const auto tenants = ParseTenants(
      "\xEF\xBB\xBF[tenant.a]\r\nturns = 8.0\r\nbytes = \"0.5kb\"\r\n", "F");
  ASSERT_TRUE(tenants.ok()) << tenants.status();
  EXPECT_EQ(tenants->at("a").turns, 8);
  EXPECT_EQ(tenants->at("a").bytes, 512);
  EXPECT_EQ(KeyError("turns = true"),
            "turns: must be a whole number, at least 1");
  EXPECT_EQ(KeyError("turns = nan"),
            "turns: must be a whole number, at least 1");
  EXPECT_EQ(KeyError("turns = \"8\""),
            "turns: must be a whole number, at least 1");
}

TEST(TenantsFile, AnUnknownKeyIsNamedWithTheNearestOne) {
  EXPECT_EQ(KeyError("wieght = 1"),
            "wieght: is not a quota; did you mean weight?");
  EXPECT_EQ(KeyError("tokens_out_per_minut = 1"),
            "tokens_out_per_minut: is not a quota; did you mean "
            "tokens_out_per_minute?");
  EXPECT_EQ(KeyError("colour = 1"), "colour: is not a quota");
  EXPECT_EQ(Error("[tennant.a]\n"),
            "F: tennant: only tables [tenant.NAME] are known; did you mean "
            "tenant?");
}

TEST(TenantsFile, ValuesOutOfRangeAreNamed) {
  for (const char* key : {"turns", "sessions", "tokens_in_per_minute",
                          "tokens_out_per_minute", "calls_per_second"}) {
    for (const char* value :
         {"0", "-1", "1.5", "\"5\"", "true", "[1]", "9223372036854775807"}) {
      EXPECT_EQ(KeyError(std::string(key) + " = " + value),
                std::string(key) + ": must be a whole number, at least 1");
    }
  }
  for (const char* value :
       {"0", "-1", "0.0009", "1000001", "nan", "inf", "\"1\"", "true"}) {
    EXPECT_EQ(KeyError(std::string("weight = ") + value),
              "weight: must be a number in 0.001..1000000");
  }
  for (const char* value :
       {"5", "\"\"", "\"0\"", "\"-5s\"", "\"inf\"", "\"soon\""}) {
    EXPECT_EQ(KeyError(std::string("longest_turn = ") + value),
              "longest_turn: must be a time above 0, like \"90s\" or \"10m\"");
  }
  for (const char* value : {"0", "1", "\"true\"", "[true]"}) {
    EXPECT_EQ(KeyError(std::string("count_cached_tokens = ") + value),
              "count_cached_tokens: must be true or false");
  }
}

TEST(TenantsFile, NamesAreChecked) {
  EXPECT_EQ(
      Error("[tenant.\"a b\"]\n"),
      "F: tenant.a b: is not a name of 1 to 64 characters of A-Z a-z 0-9 _ -");
  EXPECT_EQ(
      Error("[tenant.\"\"]\n"),
      "F: tenant.: is not a name of 1 to 64 characters of A-Z a-z 0-9 _ -");
  EXPECT_NE(Error("[tenant." + std::string(65, 'a') + "]\n"), "");
  EXPECT_TRUE(
      ParseTenants("[tenant." + std::string(64, 'a') + "]\n", "F").ok());
  EXPECT_EQ(Error("[tenant.other]\n"),
            "F: tenant.other: stands for all that are not in the file");
  EXPECT_EQ(Error("[tenant]\na = 1\n"), "F: tenant.a: must be a table");
  EXPECT_EQ(Error("tenant = 1\n"),
            "F: tenant: only tables [tenant.NAME] are known");
}

TEST(TenantsFile, WhatIsNoTomlHasItsLine) {
  const std::string error = Error("[tenant.a]\nweight = = 1\n");
  EXPECT_EQ(error.substr(0, 4), "F:2:");
}

TEST(TenantsFile, TenantsAreBounded) {
  std::string text;
  for (size_t i = 0; i < kMostTenants; ++i) {
    text += "[tenant.t" + std::to_string(i) + "]\n";
  }
  EXPECT_TRUE(ParseTenants(text, "F").ok());
  EXPECT_EQ(Error(text + "[tenant.more]\n"),
            "F: has 1001 tenants, more than 1000");
}

TEST(TenantsFile, AFileThatIsNotThereIsNamed) {
  const auto missing = ReadTenants("/nowhere/tenants.toml");
  EXPECT_FALSE(missing.ok());
  EXPECT_NE(missing.status().message().find("/nowhere/tenants.toml"),
            std::string::npos);
}

TEST(TenantsFile, AFileIsRead) {
  const std::string path = ::testing::TempDir() + "/tenants_file_test.toml";
  std::ofstream(path) << "[tenant.a]\nturns = 3\n";
  const auto tenants = ReadTenants(path);
  ASSERT_TRUE(tenants.ok()) << tenants.status();
  EXPECT_EQ(tenants->at("a").turns, 3);
  std::remove(path.c_str());
}

TEST(TenantsFile, BytesAreANumberOrASizeAsFlagsHaveThem) {
  const std::pair<const char*, int64_t> sizes[] = {
      {"1", 1},
      {"536870912", 536'870'912},
      {"\"512MiB\"", 536'870'912},
      {"\"512mb\"", 536'870'912},
      {"\"2 GB\"", int64_t{2} << 30},
      {"\"100\"", 100}};
  for (const auto& [text, bytes] : sizes) {
    const auto tenants =
        ParseTenants(std::string("[tenant.a]\nbytes = ") + text, "F");
    ASSERT_TRUE(tenants.ok()) << tenants.status();
    EXPECT_EQ(tenants->at("a").bytes, bytes) << text;
  }
  for (const char* text : {"0", "-1", "1.5", "true", "[1]"}) {
    EXPECT_EQ(KeyError(std::string("bytes = ") + text),
              "bytes: must be a whole number, at least 1, or a size like "
              "\"64KiB\"");
  }
  for (const std::string text : {"much", "", "5 apples"}) {
    EXPECT_EQ(KeyError("bytes = \"" + text + "\""),
              "bytes: '" + text + "' is not a size like 64KiB");
  }
  EXPECT_NE(KeyError("bytes = \"0\""), "");
  EXPECT_NE(KeyError("bytes = \"-1MiB\""), "");
  EXPECT_NE(KeyError("bytes = \"9000000000GiB\""), "");
}

}  // namespace

}  // namespace txl
