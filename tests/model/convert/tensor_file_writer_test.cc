#include "model/convert/tensor_file_writer.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/checkpoint/safetensors.h"
#include "model/convert/container/open_file_checkpoint.h"
#include "tests/model/checkpoint/raw_safetensors.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

StoredTensor Floats(std::vector<int64_t> shape, std::vector<float> values) {
  return *RowMajor(DType::kF32, std::move(shape),
                   BytesInMemory(F32Bytes(values), "memory"));
}

PlannedTensor Plan(std::vector<StoredTensor> pieces, int64_t axis = 0) {
  return {std::move(pieces), axis};
}

using Tensors = std::map<std::string, PlannedTensor>;

class TensorFileTest : public testing::Test {
 protected:
  absl::Status Write(const Tensors& tensors,
                     const TensorFileOptions& options = {}) {
    std::filesystem::remove(path_);
    return WriteTensorFile(path_, tensors, options);
  }

  // The bytes of a tensor of the file.
  std::string Bytes(const std::string& name) {
    const auto reader = SafetensorsReader::Open(path_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    const auto bytes = (*reader)->Bytes((*reader)->tensors().at(name));
    return std::string(bytes.begin(), bytes.end());
  }

  std::vector<int64_t> Shape(const std::string& name) {
    const auto reader = SafetensorsReader::Open(path_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return (*reader)->tensors().at(name).shape;
  }

  std::string Refusal(const Tensors& tensors) {
    const absl::Status status = Write(tensors);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_FALSE(std::filesystem::exists(path_));
    return std::string(status.message());
  }

  const std::string folder_ = FreshTempFolder("tensor_file");
  const std::string path_ = folder_ + "/model.safetensors";
};

TEST_F(TensorFileTest, IsTheFormatByteByByte) {
  const StoredTensor bytes =
      *RowMajor(DType::kU8, {3}, BytesInMemory("xyz", "memory"));
  ASSERT_TRUE(
      Write({{"b", Plan({Floats({2}, {1, 2})})}, {"a", Plan({bytes})}}).ok());
  std::string header =
      R"({"a":{"data_offsets":[0,3],"dtype":"U8","shape":[3]},)"
      R"("b":{"data_offsets":[3,11],"dtype":"F32","shape":[2]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(ReadWholeFile(path_),
            RawSafetensors(header, "xyz" + F32Bytes({1, 2})));
}

TEST_F(TensorFileTest, KeepsMetadata) {
  TensorFileOptions options;
  options.metadata = {{"family", "kimiyoung"}};
  ASSERT_TRUE(Write({{"a", Plan({Floats({1}, {1})})}}, options).ok());
  const auto reader = SafetensorsReader::Open(path_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT((*reader)->metadata(), ElementsAre(Pair("family", "kimiyoung")));
}

TEST_F(TensorFileTest, JoinsRows) {
  ASSERT_TRUE(Write({{"t", Plan({Floats({1, 2}, {1, 2}),
                                 Floats({2, 2}, {3, 4, 5, 6})})}})
                  .ok());
  EXPECT_THAT(Shape("t"), ElementsAre(3, 2));
  EXPECT_EQ(Bytes("t"), F32Bytes({1, 2, 3, 4, 5, 6}));
}

TEST_F(TensorFileTest, JoinsColumns) {
  ASSERT_TRUE(
      Write({{"t",
              Plan({Floats({2, 1}, {1, 4}), Floats({2, 2}, {2, 3, 5, 6})}, 1)}})
          .ok());
  EXPECT_THAT(Shape("t"), ElementsAre(2, 3));
  EXPECT_EQ(Bytes("t"), F32Bytes({1, 2, 3, 4, 5, 6}));
}

TEST_F(TensorFileTest, JoinsAMiddleAxis) {
  // [2, 1, 2] and [2, 2, 2] of numbers 100 i + 10 j + k.
  ASSERT_TRUE(
      Write(
          {{"t", Plan({Floats({2, 1, 2}, {0, 1, 100, 101}),
                       Floats({2, 2, 2}, {10, 11, 20, 21, 110, 111, 120, 121})},
                      1)}})
          .ok());
  EXPECT_THAT(Shape("t"), ElementsAre(2, 3, 2));
  EXPECT_EQ(Bytes("t"),
            F32Bytes({0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121}));
}

TEST_F(TensorFileTest, WritesViews) {
  const StoredTensor t = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  ASSERT_TRUE(Write({{"turned", Plan({Transposed(t)})},
                     {"one", Plan({Columns(t, 1, 2)})}})
                  .ok());
  EXPECT_EQ(Bytes("turned"), F32Bytes({1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(Bytes("one"), F32Bytes({2, 5}));
}

TEST_F(TensorFileTest, WritesScalarsAndEmptyTensors) {
  ASSERT_TRUE(
      Write({{"scalar", Plan({Floats({}, {7})})},
             {"empty", Plan({Floats({0, 3}, {})})},
             {"wide", Plan({Floats({0, 3}, {}), Floats({0, 2}, {})}, 1)}})
          .ok());
  EXPECT_EQ(Bytes("scalar"), F32Bytes({7}));
  EXPECT_EQ(Bytes("empty"), "");
  EXPECT_THAT(Shape("wide"), ElementsAre(0, 5));
}

TEST_F(TensorFileTest, NamesATensorThatIsNotFinite) {
  const float nan = std::nanf("");
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {nan, inf, -inf}) {
    EXPECT_THAT(
        Refusal({{"fine", Plan({Floats({1}, {1})})},
                 {"layer.0.wq", Plan({Floats({1}, {1}), Floats({1}, {bad})})}}),
        HasSubstr("tensor layer.0.wq holds NaN or infinity"));
    EXPECT_THAT(
        Refusal({{"t", Plan({Floats({1, 1}, {1}), Floats({1, 1}, {bad})}, 1)}}),
        HasSubstr("tensor t holds NaN"));
  }
  // Not part of the tensor.
  const StoredTensor view = Columns(Floats({1, 2}, {nan, 1}), 1, 2);
  EXPECT_TRUE(Write({{"t", Plan({view})}}).ok());
}

TEST_F(TensorFileTest, RefusesPiecesThatDoNotFit) {
  const StoredTensor bytes =
      *RowMajor(DType::kU8, {1}, BytesInMemory("x", "memory"));
  const auto refused = [&](const PlannedTensor& tensor) {
    EXPECT_THAT(Refusal({{"t", tensor}}), HasSubstr("tensor t"));
  };
  refused(Plan({Floats({1, 2}, {1, 2}), Floats({1, 1}, {1})}));
  refused(Plan({Floats({1, 1}, {1}), Floats({2, 1}, {1, 2})}, 1));
  refused(Plan({Floats({1}, {1}), bytes}));
  refused(Plan({Floats({1}, {1}), Floats({1, 1}, {1})}));
  refused(Plan({Floats({}, {1}), Floats({}, {1})}));
  refused(Plan({Floats({1}, {1}), Floats({1}, {1})}, 1));
  refused(Plan({Floats({1}, {1})}, -1));
  refused(Plan({}));
  EXPECT_THAT(Refusal({{"__metadata__", Plan({Floats({1}, {1})})}}),
              HasSubstr("__metadata__"));
}

// hostile.json: "non-finite weight", in a file that is well-formed.
TEST_F(TensorFileTest, RefusesTheHostileFileWithANaN) {
  const char* data = std::getenv("TXL_TEST_DATA");
  const auto checkpoint =
      ReadSafetensorsFile(std::string(data != nullptr ? data : "tests") +
                          "/hostile/hf_nan_weight/model.safetensors");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  Tensors tensors;
  for (const auto& [name, tensor] : checkpoint->tensors) {
    tensors[name] = Plan({tensor});
  }
  EXPECT_THAT(Refusal(tensors), HasSubstr("holds NaN"));
}

// 4 bytes that claim to be 2^42.
TEST_F(TensorFileTest, RefusesViewsThatRepeatTheirElementsWithoutEnd) {
  const auto repeated = Strided(DType::kF32, {int64_t{1} << 40}, {0}, 0,
                                BytesInMemory(F32Bytes({1}), "memory"));
  ASSERT_TRUE(repeated.ok()) << repeated.status();
  EXPECT_THAT(Refusal({{"t", Plan({*repeated})}}),
              HasSubstr("tensor t is larger than what is stored"));
}

TEST_F(TensorFileTest, NeverOverwritesAFile) {
  std::ofstream(path_) << "there before";
  const absl::Status status =
      WriteTensorFile(path_, {{"a", Plan({Floats({1}, {1})})}}, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadWholeFile(path_), "there before");
}

TEST_F(TensorFileTest, NamesAFileThatCannotBeMade) {
  const absl::Status status =
      WriteTensorFile(folder_ + "/none/model.safetensors",
                      {{"a", Plan({Floats({1}, {1})})}}, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("/none/model.safetensors"));
}

TEST_F(TensorFileTest, TellsItsProgress) {
  std::vector<std::string> lines;
  TensorFileOptions options;
  options.progress = [&](absl::string_view name, uint64_t done, uint64_t all) {
    lines.push_back(std::string(name) + " " + std::to_string(done) + "/" +
                    std::to_string(all));
  };
  ASSERT_TRUE(Write({{"a", Plan({Floats({1}, {1})})},
                     {"b", Plan({Floats({2}, {1, 2})})}},
                    options)
                  .ok());
  EXPECT_THAT(lines, ElementsAre("a 4/12", "b 12/12"));
}

}  // namespace
}  // namespace txl
