// A damaged export is refused, wherever the damage is.

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/session/export_fixture.h"

namespace txl {
namespace {

using ::testing::AnyOf;

class SessionImportDamageTest : public testing::TestWithParam<const char*> {
 protected:
  SessionImportDamageTest()
      : options_{"model", 300, GetParam()},
        whole_(ExportAll(options_, RandomTokens(20, 300),
                         ExportedState(30, 20))) {}

  // What the file is to a server with the key, and to one without.
  void ExpectRefused(const std::string& file, const std::string& what) {
    ImportOptions options = ImportOptionsFor(options_);
    for (const char* key : {"key", ""}) {
      options.key = key;
      const absl::Status status = ImportAll(options, file).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << what;
      // A state's size is looked at before the sums can come.
      EXPECT_THAT(ReasonAndFieldOf(status),
                  AnyOf("FIELD_INVALID chunk", "OVER_LIMIT chunk"))
          << what;
    }
  }

  const ExportOptions options_;
  const std::string whole_;
};

TEST_P(SessionImportDamageTest, EveryFlippedByteIsNoticed) {
  for (size_t i = 0; i < whole_.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xFF}) {
      std::string damaged = whole_;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      ExpectRefused(damaged, "byte " + std::to_string(i));
    }
  }
}

TEST_P(SessionImportDamageTest, EveryCutIsNoticed) {
  for (size_t size = 0; size < whole_.size(); ++size) {
    ExpectRefused(whole_.substr(0, size), std::to_string(size) + " bytes");
  }
}

TEST_P(SessionImportDamageTest, BytesBehindTheEndAreNoticed) {
  ExpectRefused(whole_ + '\0', "a byte more");
  ExpectRefused(whole_ + whole_, "twice");
}

TEST_P(SessionImportDamageTest, MissingAndRepeatedPartsAreNoticed) {
  for (size_t begin = 0; begin < whole_.size(); begin += 3) {
    for (const size_t size : {1u, 4u, 12u, 16u, 48u}) {
      if (begin + size > whole_.size()) continue;
      std::string damaged = whole_;
      damaged.erase(begin, size);
      ExpectRefused(damaged, "without " + std::to_string(begin));
      damaged = whole_;
      damaged.insert(begin, whole_.substr(begin, size) + '\0');
      ExpectRefused(damaged, "twice " + std::to_string(begin));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutAMac, SessionImportDamageTest,
                         testing::Values("key", ""));

TEST(SessionImportDamage, ASwapOfWholeBlocksIsNoticed) {
  const ExportOptions options = {"model", 256, ""};
  const std::string file = ExportAll(options, RandomTokens(3 << 20, 256));
  // Behind the preamble, the head's section and the header of IDS: blocks of
  // 1 MiB with their checksums.
  const size_t begin = 8 + 12 + (4 + 5 + 8 + 8 + 8 + 4) + 4 + 12;
  const size_t block = (1 << 20) + 4;
  const std::string swapped =
      file.substr(0, begin) + file.substr(begin + block, block) +
      file.substr(begin, block) + file.substr(begin + 2 * block);
  EXPECT_EQ(
      ReasonAndFieldOf(ImportAll(ImportOptionsFor(options), swapped).status()),
      "FIELD_INVALID chunk");
  EXPECT_TRUE(ImportAll(ImportOptionsFor(options), file).ok());
}

}  // namespace
}  // namespace txl
