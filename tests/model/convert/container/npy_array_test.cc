#include "model/convert/container/npy_array.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/checkpoint/raw_safetensors.h"
#include "tests/model/convert/container/checkpoint_check.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A file as the format's description has it.
std::string Npy(const std::string& header, const std::string& data,
                char version = 1) {
  std::string file = "\x93NUMPY";
  file.push_back(version);
  file.push_back('\0');
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    file.push_back(static_cast<char>(header.size() >> (8 * i)));
  }
  return file + header + data;
}

std::string Dict(const std::string& descr, const std::string& shape,
                 const std::string& order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order +
         ", 'shape': " + shape + ", }     \n";
}

absl::StatusOr<StoredTensor> ReadArray(const std::string& bytes) {
  return ReadNpy(BytesInMemory(bytes, "a.npy"));
}

std::string Values(const StoredTensor& tensor) {
  const auto bytes = ReadTensor(tensor);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *bytes : "";
}

std::string HeaderRefusal(const std::string& header) {
  const auto parsed = ParseNpyHeader(header);
  EXPECT_FALSE(parsed.ok()) << header;
  return std::string(parsed.status().message());
}

std::string ArrayRefusal(const std::string& bytes) {
  const auto tensor = ReadArray(bytes);
  EXPECT_EQ(tensor.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(tensor.status().message()), StartsWith("a.npy"));
  return std::string(tensor.status().message());
}

TEST(NpyHeader, ReadsWhatNumPyWrites) {
  const auto header = ParseNpyHeader(
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 14), }        \n");
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->dtype, DType::kF32);
  EXPECT_FALSE(header->fortran_order);
  EXPECT_THAT(header->shape, ElementsAre(3, 14));
}

TEST(NpyHeader, ReadsEveryShape) {
  const auto shape = [](const std::string& text) {
    const auto header = ParseNpyHeader(Dict("<f4", text));
    EXPECT_TRUE(header.ok()) << text << ": " << header.status();
    return header.ok() ? header->shape : std::vector<int64_t>{-1};
  };
  EXPECT_THAT(shape("()"), IsEmpty());
  EXPECT_THAT(shape("(5,)"), ElementsAre(5));
  EXPECT_THAT(shape("( 5 , 6 )"), ElementsAre(5, 6));
  EXPECT_THAT(shape("(5, 0, 7,)"), ElementsAre(5, 0, 7));
  EXPECT_THAT(shape("(5L, 6L)"), ElementsAre(5, 6));  // Python 2
}

TEST(NpyHeader, TakesAnyOrderQuoteAndSpacing) {
  const auto header = ParseNpyHeader(
      "{\"shape\":(2,),\"fortran_order\":True,\"descr\":\"|u1\"}");
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->dtype, DType::kU8);
  EXPECT_TRUE(header->fortran_order);
}

TEST(NpyHeader, KnowsTheDTypes) {
  const std::pair<const char*, DType> known[] = {
      {"<f2", DType::kF16}, {"<f4", DType::kF32}, {"<f8", DType::kF64},
      {"<i4", DType::kI32}, {"<i8", DType::kI64}, {"|u1", DType::kU8}};
  for (const auto& [descr, dtype] : known) {
    const auto header = ParseNpyHeader(Dict(descr, "(1,)"));
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->dtype, dtype) << descr;
  }
}

TEST(NpyHeader, RefusesOtherDTypes) {
  EXPECT_THAT(HeaderRefusal(Dict("|O", "(1,)")), HasSubstr("pickled objects"));
  EXPECT_THAT(HeaderRefusal(Dict(">f4", "(1,)")), HasSubstr("big-endian"));
  EXPECT_THAT(HeaderRefusal(Dict("<c8", "(1,)")), HasSubstr("<c8"));
  EXPECT_THAT(HeaderRefusal(Dict("|b1", "(1,)")), HasSubstr("not supported"));
  EXPECT_THAT(HeaderRefusal("{'descr': [('a', '<f4')], 'fortran_order': False,"
                            " 'shape': (1,), }"),
              HasSubstr("not a plain one"));
}

TEST(NpyHeader, RefusesWhatIsNoSuchDictionary) {
  for (const std::string bad :
       {"", "[]", "{", "{'descr'}", "{'descr': '<f4'", "{'descr': '<f4}",
        "{'descr': '<f4' 'shape': ()}", "{'descr': '\\x3cf4', 'shape': ()}"}) {
    HeaderRefusal(bad);
  }
  EXPECT_THAT(HeaderRefusal("{}"), HasSubstr("lacks"));
  EXPECT_THAT(HeaderRefusal("{'descr': '<f4', 'shape': ()}"),
              HasSubstr("lacks"));
  EXPECT_THAT(HeaderRefusal(Dict("<f4", "()") + "x"), HasSubstr("goes on"));
  EXPECT_THAT(HeaderRefusal("{'descr': '<f4', 'descr': '<f4'}"),
              HasSubstr("repeated"));
  EXPECT_THAT(HeaderRefusal("{'other': 1}"), HasSubstr("unknown"));
  EXPECT_THAT(HeaderRefusal(Dict("<f4", "()", "Maybe")), HasSubstr("neither"));
}

TEST(NpyHeader, RefusesOtherShapes) {
  for (const std::string bad :
       {"5", "(5)", "(,)", "(5,,)", "(-1,)", "(1.5,)", "(a,)", "(5 6)", "(5,",
        "(99999999999999999999,)", "(1,1,1,1,1,1,1,1,1)"}) {
    HeaderRefusal(Dict("<f4", bad));
  }
}

TEST(ReadNpy, ReadsRowsInEveryVersion) {
  const std::string data = F32Bytes({1, 2, 3, 4, 5, 6});
  for (const char version : {1, 2, 3}) {
    const auto tensor = ReadArray(Npy(Dict("<f4", "(2, 3)"), data, version));
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_THAT(tensor->shape, ElementsAre(2, 3));
    EXPECT_EQ(Values(*tensor), data);
  }
}

TEST(ReadNpy, TurnsColumnsIntoRows) {
  // [[1, 2, 3], [4, 5, 6]], column by column.
  const auto tensor = ReadArray(
      Npy(Dict("<f4", "(2, 3)", "True"), F32Bytes({1, 4, 2, 5, 3, 6})));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(Values(*tensor), F32Bytes({1, 2, 3, 4, 5, 6}));
  // Of three dimensions: element [i, j, k] is 100 i + 10 j + k.
  const auto cube =
      ReadArray(Npy(Dict("|u1", "(2, 2, 2)", "True"),
                    std::string("\0\x64\x0a\x6e\1\x65\x0b\x6f", 8)));
  ASSERT_TRUE(cube.ok()) << cube.status();
  EXPECT_EQ(Values(*cube), std::string("\0\1\x0a\x0b\x64\x65\x6e\x6f", 8));
}

TEST(ReadNpy, ReadsScalarsAndEmptyArrays) {
  const auto scalar = ReadArray(Npy(Dict("<f4", "()"), F32Bytes({7})));
  ASSERT_TRUE(scalar.ok()) << scalar.status();
  EXPECT_EQ(Values(*scalar), F32Bytes({7}));
  for (const char* order : {"True", "False"}) {
    const auto empty = ReadArray(Npy(Dict("<f4", "(3, 0)", order), ""));
    ASSERT_TRUE(empty.ok()) << empty.status();
    EXPECT_EQ(Values(*empty), "");
  }
}

TEST(ReadNpy, ReadsGoldenFiles) {
  const auto file =
      OpenFile(TestFile("golden/labml-char/native/checkpoints_npy/0000040000/"
                        "model_generator.bias.npy"));
  ASSERT_TRUE(file.ok()) << file.status();
  const auto tensor = ReadNpy(*file);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_THAT(tensor->shape, ElementsAre(63));
}

TEST(ReadNpy, RefusesSizesThatContradictTheFile) {
  const std::string header = Dict("<f4", "(2,)");
  ArrayRefusal(Npy(header, std::string(7, 'x')));
  ArrayRefusal(Npy(header, std::string(9, 'x')));
  ArrayRefusal(Npy(Dict("<f4", "(4611686018427387904, 4)"), ""));
  ArrayRefusal(Npy(Dict("<f4", "(4611686018427387904, 4)", "True"), ""));
}

TEST(ReadNpy, RefusesDamagedFiles) {
  EXPECT_THAT(ArrayRefusal(""), HasSubstr("not an npy file"));
  EXPECT_THAT(ArrayRefusal("\x93NUMPZ\1\0 longer than that"),
              HasSubstr("not an npy file"));
  const std::string good = Npy(Dict("<f4", "(2,)"), std::string(8, 'x'));
  for (size_t size = 0; size < good.size(); ++size) {
    ArrayRefusal(good.substr(0, size));
  }
  EXPECT_THAT(ArrayRefusal(Npy(Dict("<f4", "(2,)"), std::string(8, 'x'), 4)),
              HasSubstr("version"));
  std::string huge = Npy("", "", 2);
  huge.replace(8, 4, "\xff\xff\xff\xff");
  EXPECT_THAT(ArrayRefusal(huge), HasSubstr("header longer"));
}

}  // namespace
}  // namespace txl
