#include "model/convert/container/sorted_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/base/crc32c.h"
#include "tests/model/checkpoint/raw_safetensors.h"
#include "tests/model/convert/container/checkpoint_check.h"
#include "tests/model/convert/container/tensor_bundle_writer.h"

namespace txl {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Entries = std::map<std::string, std::string>;

absl::StatusOr<Entries> ReadEntries(const std::string& bytes) {
  return ReadSortedTable(*BytesInMemory(bytes, "t.index"));
}

std::string TableRefusal(const std::string& bytes) {
  const auto entries = ReadEntries(bytes);
  EXPECT_FALSE(entries.ok());
  EXPECT_EQ(entries.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(entries.status().message()), StartsWith("t.index: "));
  return std::string(entries.status().message());
}

Entries Many(int count) {
  Entries entries;
  for (int i = 0; i < count; ++i) {
    entries[absl::StrFormat("scope/layer_%05d/kernel", i)] =
        absl::StrCat("value ", i);
  }
  return entries;
}

// A table of one data block with these bytes (restarts included), made by hand.
std::string TableOf(const std::string& block, char compression = 0) {
  const auto with_trailer = [](std::string text, char kind) {
    text.push_back(kind);
    const uint32_t crc = MaskCrc32c(ExtendCrc32c(0, text.data(), text.size()));
    for (int i = 0; i < 4; ++i) {
      text.push_back(static_cast<char>(crc >> (8 * i)));
    }
    return text;
  };
  std::string file = with_trailer(block, compression);
  const char size = static_cast<char>(block.size());
  // One entry: key "~", value: handle (0, size). One restart point, at 0.
  const std::string index =
      std::string("\0\1\2~\0", 5) + size + std::string("\0\0\0\0\1\0\0\0", 8);
  const char at = static_cast<char>(file.size());
  file += with_trailer(index, 0);
  std::string footer = {0, 0, at, static_cast<char>(index.size())};
  footer.resize(40, '\0');
  return file + footer + "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
}

const std::string kOneRestart("\0\0\0\0\1\0\0\0", 8);

TEST(SortedTable, ReadsATableMadeByHand) {
  // "ab" -> "1", then "ac" sharing one byte -> "22".
  const std::string block =
      std::string("\0\2\1ab1", 6) + std::string("\1\1\2c22", 6) + kOneRestart;
  const auto entries = ReadEntries(TableOf(block));
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(*entries, (Entries{{"ab", "1"}, {"ac", "22"}}));
}

TEST(SortedTable, ReadsWhatTensorFlowWrote) {
  const std::string path = TestFile(
      "model/convert/container/testdata/tensor_bundle/saver/"
      "model.ckpt-40000.index");
  const auto entries = ReadEntries(ReadWholeFile(path));
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(entries->count(""), 1u);
  EXPECT_EQ(entries->count("transformer/layer_0/rel_attn/qkv/kernel"), 1u);
  EXPECT_EQ(entries->count("transformer/layer_10/ff/layer_1/kernel"), 1u);
  EXPECT_EQ(entries->count("global_step"), 1u);
}

TEST(SortedTable, ReadsBlocksOfAnySize) {
  const Entries entries = Many(500);
  for (const size_t block_bytes : {1, 50, 1000, 1 << 20}) {
    const auto read = ReadEntries(SortedTableBytes(entries, block_bytes));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, entries);
  }
  const auto empty = ReadEntries(SortedTableBytes({}));
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_TRUE(empty->empty());
}

TEST(SortedTable, IsKnownByItsEnd) {
  const std::string table = SortedTableBytes(Many(3));
  EXPECT_TRUE(LooksLikeSortedTable(*BytesInMemory(table, "t")));
  EXPECT_FALSE(LooksLikeSortedTable(*BytesInMemory(table + " ", "t")));
  EXPECT_FALSE(LooksLikeSortedTable(*BytesInMemory("", "t")));
  EXPECT_THAT(TableRefusal("PK"), HasSubstr("no"));
}

TEST(SortedTable, RefusesCompressedBlocks) {
  const std::string block = std::string("\0\1\1ab", 5) + kOneRestart;
  EXPECT_THAT(TableRefusal(TableOf(block, 1)), HasSubstr("Snappy"));
  EXPECT_THAT(TableRefusal(TableOf(block, 2)), HasSubstr("compressed"));
}

TEST(SortedTable, RefusesEntriesThatDoNotFit) {
  const auto refusal = [](const std::string& entry) {
    return TableRefusal(TableOf(entry + kOneRestart));
  };
  // A first key that shares, a key and a value beyond the block, a number
  // without end.
  EXPECT_THAT(refusal(std::string("\1\1\0a", 4)), HasSubstr("exceeds"));
  EXPECT_THAT(refusal(std::string("\0\5\0a", 4)), HasSubstr("exceeds"));
  EXPECT_THAT(refusal(std::string("\0\1\5a", 4)), HasSubstr("exceeds"));
  EXPECT_THAT(refusal(std::string(12, '\xff')), HasSubstr("exceeds"));
  // The second key equals the first.
  EXPECT_THAT(refusal(std::string("\0\1\0a\1\0\0", 7)), HasSubstr("sorted"));
  EXPECT_THAT(TableRefusal(TableOf("ab")), HasSubstr("too short"));
  EXPECT_THAT(TableRefusal(TableOf(std::string("\xff\xff\xff\xff", 4))),
              HasSubstr("restart"));
}

TEST(SortedTable, RefusesKeysAndNumbersOfEntriesBeyondItsLimits) {
  EXPECT_THAT(TableRefusal(SortedTableBytes({{std::string(1025, 'k'), "v"}})),
              HasSubstr("1 KiB"));
  EXPECT_THAT(TableRefusal(SortedTableBytes(Many(65'537))), HasSubstr("65536"));
}

// Whatever byte is damaged: a refusal or the same entries (padding), no crash.
TEST(SortedTable, NoDamagedByteGoesUnnoticed) {
  const Entries entries = Many(40);
  const std::string good = SortedTableBytes(entries, 200);
  int noticed = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int mask : {0x01, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ mask);
      const auto read = ReadEntries(bad);
      if (read.ok()) {
        EXPECT_EQ(*read, entries) << "byte " << i;
      } else {
        ++noticed;
      }
    }
  }
  // All but the metaindex block, its handle and the footer's padding.
  EXPECT_GT(noticed, static_cast<int>(3 * (good.size() - 64)));
}

TEST(SortedTable, NoPrefixIsTakenForTheWhole) {
  const std::string good = SortedTableBytes(Many(10), 100);
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(ReadEntries(good.substr(0, size)).ok());
  }
}

}  // namespace
}  // namespace txl
