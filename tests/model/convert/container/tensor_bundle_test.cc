#include "model/convert/container/tensor_bundle.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/base/crc32c.h"
#include "tests/model/checkpoint/raw_safetensors.h"
#include "tests/model/convert/container/checkpoint_check.h"
#include "tests/model/convert/container/tensor_bundle_writer.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Written by TensorFlow 2.15: "saver" by the Saver of version 1, with a
// variable in three partitions, the others by SaveV2 and MergeV2Checkpoints.
std::string RealBundle(const std::string& name) {
  return TestFile("model/convert/container/testdata/tensor_bundle/" + name);
}

NativeCheckpoint OpenBundle(const std::string& prefix) {
  auto checkpoint = ReadTensorBundle(prefix);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return checkpoint.ok() ? *std::move(checkpoint) : NativeCheckpoint();
}

TEST(TensorBundle, ReadsWhatTensorFlowsSaverWrote) {
  const NativeCheckpoint checkpoint =
      OpenBundle(RealBundle("saver/model.ckpt-40000"));
  EXPECT_EQ(checkpoint.container, "tensorflow checkpoint");
  EXPECT_TRUE(checkpoint.data.is_null());
  ExpectTensorsOf(checkpoint, RealBundle("saver/expected.safetensors"));
  // A step counter stays a tensor; partitions are joined.
  EXPECT_THAT(checkpoint.tensors.at("global_step").shape, IsEmpty());
  EXPECT_THAT(
      checkpoint.tensors.at("transformer/adaptive_embed/lookup_table").shape,
      ElementsAre(11, 4));
}

TEST(TensorBundle, ReadsSeveralDataFiles) {
  ExpectTensorsOf(OpenBundle(RealBundle("sharded/model")),
                  RealBundle("sharded/expected.safetensors"));
}

TEST(TensorBundle, ReadsPartsOfAJoinedTensor) {
  const NativeCheckpoint checkpoint = OpenBundle(RealBundle("sharded/model"));
  const StoredTensor& table = checkpoint.tensors.at("table");
  const std::string whole = BytesOf(checkpoint, "table");
  const auto rows = ReadTensor(Rows(table, 3, 6));  // of both files
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(*rows, whole.substr(3 * 12, 3 * 12));
}

// Partitions that begin where the code of a number grows by a byte.
TEST(TensorBundle, FindsPartitionsOfAnyLength) {
  const std::string bytes = BytesOf(OpenBundle(RealBundle("wide/model")), "w");
  ASSERT_EQ(bytes.size(), 20'000u);
  for (size_t i = 0; i < bytes.size(); ++i) {
    ASSERT_EQ(static_cast<uint8_t>(bytes[i]), i % 251) << i;
  }
}

TEST(TensorBundle, SaysWhichTensorIsCutAlongAnotherDimension) {
  const auto checkpoint = ReadTensorBundle(RealBundle("columns/model"));
  EXPECT_EQ(checkpoint.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(checkpoint.status().message(),
              HasSubstr("model.index: tensor c is cut along dimension 1"));
}

TEST(TensorBundle, ReadsWhatTheTestsWriterWrote) {
  const std::string folder = FreshTempFolder("bundle");
  const std::string prefix = folder + "/model";
  ASSERT_TRUE(WriteTensorBundle(
                  prefix, {{"a/b", {DType::kF32, {2, 1}, F32Bytes({1, 2})}},
                           {"empty", {DType::kF64, {0, 3}, ""}},
                           {"c", {DType::kU8, {3}, "xyz"}}})
                  .ok());
  const NativeCheckpoint checkpoint = OpenBundle(prefix);
  EXPECT_EQ(checkpoint.tensors.size(), 3u);
  EXPECT_EQ(BytesOf(checkpoint, "a/b"), F32Bytes({1, 2}));
  EXPECT_EQ(BytesOf(checkpoint, "c"), "xyz");
  EXPECT_EQ(BytesOf(checkpoint, "empty"), "");
}

TEST(TensorBundle, AFlippedBitOfATensorIsFoundWhenItIsRead) {
  const std::string folder = FreshTempFolder("bundle_bit");
  const std::string prefix = folder + "/model";
  ASSERT_TRUE(WriteTensorBundle(prefix, {{"a", {DType::kU8, {3}, "abc"}},
                                         {"b", {DType::kU8, {3}, "def"}}})
                  .ok());
  std::ofstream(prefix + ".data-00000-of-00001") << "abcdeg";
  const NativeCheckpoint checkpoint = OpenBundle(prefix);
  EXPECT_EQ(BytesOf(checkpoint, "a"), "abc");
  const auto b = ReadTensor(checkpoint.tensors.at("b"));
  EXPECT_THAT(b.status().message(), HasSubstr("tensor b: its checksum"));
}

TEST(TensorBundle, NamesAMissingDataFile) {
  const std::string folder = FreshTempFolder("bundle_missing");
  std::filesystem::copy(RealBundle("sharded/model.index"), folder);
  const auto checkpoint = ReadTensorBundle(folder + "/model");
  EXPECT_EQ(checkpoint.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(checkpoint.status().message(),
              HasSubstr("model.data-00000-of-00002"));
}

// Indexes over one data file of 100 zero bytes.
class BundleIndexTest : public testing::Test {
 protected:
  absl::StatusOr<std::map<std::string, StoredTensor>> Read() {
    return ReadBundleIndex(
        *BytesInMemory(SortedTableBytes(entries_), "m.index"),
        [this](int shard, int shards)
            -> absl::StatusOr<std::shared_ptr<const ByteSource>> {
          opened_.push_back(absl::StrCat(shard, " of ", shards));
          return BytesInMemory(std::string(100, '\0'), "m.data");
        });
  }

  std::string Refusal() {
    const auto tensors = Read();
    EXPECT_EQ(tensors.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(tensors.status().message());
  }

  // A refusal of tensor t with these fields.
  std::string RefusalOf(const BundleEntryFields& fields) {
    entries_["t"] = BundleEntryBytes(fields);
    const std::string refusal = Refusal();
    EXPECT_THAT(refusal, HasSubstr("tensor t"));
    EXPECT_THAT(refusal, Not(HasSubstr("\n")));
    return refusal;
  }

  std::map<std::string, std::string> entries_ = {
      {"", BundleHeaderBytes(/*shards=*/2)}};
  std::vector<std::string> opened_;
};

TEST_F(BundleIndexTest, OpensEachDataFileThatIsUsedOnce) {
  entries_["a"] = BundleEntryBytes({1, {2}, 1, 0, 8});
  entries_["b"] = BundleEntryBytes({1, {2}, 1, 8, 8});
  ASSERT_TRUE(Read().ok());
  EXPECT_THAT(opened_, ElementsAre("1 of 2"));
}

TEST_F(BundleIndexTest, LeavesOutTheObjectGraph) {
  entries_["_CHECKPOINTABLE_OBJECT_GRAPH"] = BundleEntryBytes({7, {}, 0, 0, 9});
  const auto tensors = Read();
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_THAT(*tensors, IsEmpty());
}

TEST_F(BundleIndexTest, ChecksTheHeader) {
  entries_[""] = BundleHeaderBytes(1, /*endianness=*/1);
  EXPECT_THAT(Refusal(), HasSubstr("big-endian"));
  entries_[""] = BundleHeaderBytes(1, 0, /*min_consumer=*/2);
  EXPECT_THAT(Refusal(), HasSubstr("newer format"));
  entries_[""] = BundleHeaderBytes(0);
  EXPECT_THAT(Refusal(), HasSubstr("number of data files"));
  entries_[""] = BundleHeaderBytes(1 << 30);
  EXPECT_THAT(Refusal(), HasSubstr("number of data files"));
  entries_[""] = "\xff\xff";
  EXPECT_THAT(Refusal(), HasSubstr("no header"));
  entries_.clear();
  EXPECT_THAT(Refusal(), HasSubstr("no header"));
}

TEST_F(BundleIndexTest, ChecksPlaceAndSizeOfATensor) {
  const int64_t big = int64_t{1} << 62;
  EXPECT_THAT(RefusalOf({1, {2}, 2, 0, 8}), HasSubstr("data file"));
  EXPECT_THAT(RefusalOf({1, {2}, -1, 0, 8}), HasSubstr("data file"));
  EXPECT_THAT(RefusalOf({1, {2}, 0, -1, 8}), HasSubstr("negative"));
  EXPECT_THAT(RefusalOf({1, {2}, 0, 0, -8}), HasSubstr("negative"));
  EXPECT_THAT(RefusalOf({1, {2}, 0, 93, 8}), HasSubstr("beyond m.data"));
  EXPECT_THAT(RefusalOf({1, {2}, 0, big, 8}), HasSubstr("beyond m.data"));
  EXPECT_THAT(RefusalOf({1, {2}, 0, 1, INT64_MAX}), HasSubstr("beyond"));
  // Other sizes than dtype and shape say.
  RefusalOf({1, {2}, 0, 0, 7});
  RefusalOf({1, {-2}, 0, 0, 8});
  RefusalOf({1, {big, big}, 0, 0, 0});
  RefusalOf({1, {1, 1, 1, 1, 1, 1, 1, 1, 2}, 0, 0, 8});
}

TEST_F(BundleIndexTest, NamesTensorsOfUnsupportedDTypes) {
  EXPECT_THAT(RefusalOf({7, {1}, 0, 0, 8}), HasSubstr("unsupported dtype 7"));
  EXPECT_THAT(RefusalOf({10, {8}, 0, 0, 8}), HasSubstr("dtype 10"));
  EXPECT_THAT(RefusalOf({0, {8}, 0, 0, 8}), HasSubstr("dtype 0"));
}

TEST_F(BundleIndexTest, RefusesDamagedEntriesAndNames) {
  entries_["t"] = "\xff";
  EXPECT_THAT(Refusal(), HasSubstr("tensor t has an entry that is damaged"));
  entries_.erase("t");
  entries_["a\nb"] = BundleEntryBytes({1, {2}, 0, 0, 8});
  EXPECT_THAT(Refusal(), HasSubstr("tensor a\\nb has an unprintable name"));
}

using ::testing::HasSubstr;

std::string Bytes(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) bytes.push_back(static_cast<char>(value));
  return bytes;
}

// As in an index that TensorFlow 2.15 wrote for c[4,6], columns 2 to 6: the
// golden files of tensor_bundle_test.cc hold longer numbers.
TEST(SliceKey, IsWhatTensorFlowWrites) {
  EXPECT_EQ(SliceKey("c", {{0, -1}, {2, 4}}),
            Bytes({0, 'c', 0, 1, 1, 2, 0x80, 0x7f, 0x82, 0x84}));
}

// The examples that explain the code in its published description: 0x424242
// takes 4 bytes.
TEST(SliceKey, LongNumbersHaveAByteForEverySevenBits) {
  const std::string head = Bytes({0, 'c', 0, 1, 1, 1});
  EXPECT_EQ(SliceKey("c", {{0x424242, 63}}),
            head + Bytes({0xf0, 0x42, 0x42, 0x42, 0xbf}));
  EXPECT_EQ(SliceKey("c", {{64, 8191}}),
            head + Bytes({0xc0, 0x40, 0xdf, 0xff}));
  EXPECT_EQ(SliceKey("c", {{8192, 1}}), head + Bytes({0xe0, 0x20, 0x00, 0x81}));
  // 63 bits and the sign: nine leading ones.
  EXPECT_EQ(SliceKey("c", {{INT64_MAX, 0}}),
            head + Bytes({0xff, 0xc0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                          0xff, 0x80}));
}

TEST(SliceKey, EscapesTheBytesThatEndAName) {
  EXPECT_EQ(SliceKey(std::string("a\0b\xff", 4), {{0, -1}}),
            Bytes({0, 'a', 0, 0xff, 'b', 0xff, 0, 0, 1, 1, 1, 0x80, 0x7f}));
}

TEST(SliceKey, SortsByNameThenByStart) {
  int64_t last = 0;
  for (const int64_t start : {1, 63, 64, 127, 128, 8191, 8192, 1 << 20}) {
    EXPECT_LT(SliceKey("c", {{last, 1}}), SliceKey("c", {{start, 1}}));
    last = start;
  }
  EXPECT_LT(SliceKey("c", {{1 << 20, 1}}), SliceKey("ca", {{0, 1}}));
}

TEST(RowsOfSlice, AreThoseOfTheFirstDimension) {
  const auto rows = RowsOfSlice({{3, 4}, {0, -1}}, {7, 5});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->begin, 3);
  EXPECT_EQ(rows->end, 7);
  const auto spelt_out = RowsOfSlice({{0, -1}, {0, 5}}, {7, 5});
  ASSERT_TRUE(spelt_out.ok()) << spelt_out.status();
  EXPECT_EQ(spelt_out->begin, 0);
  EXPECT_EQ(spelt_out->end, 7);
}

TEST(RowsOfSlice, RefusesWhatIsNoRunOfRows) {
  EXPECT_THAT(RowsOfSlice({{0, -1}, {2, 3}}, {7, 5}).status().message(),
              HasSubstr("cut along dimension 1"));
  EXPECT_THAT(RowsOfSlice({{0, -1}}, {7, 5}).status().message(),
              HasSubstr("dimensions"));
  EXPECT_FALSE(RowsOfSlice({}, {}).ok());
  EXPECT_FALSE(RowsOfSlice({{-1, 2}}, {7}).ok());
  EXPECT_FALSE(RowsOfSlice({{8, 0}}, {7}).ok());
  EXPECT_FALSE(RowsOfSlice({{6, 2}}, {7}).ok());
  EXPECT_FALSE(RowsOfSlice({{1, INT64_MAX}}, {7}).ok());
}

}  // namespace

}  // namespace txl
