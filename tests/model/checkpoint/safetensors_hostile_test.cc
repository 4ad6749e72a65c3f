#include <sys/stat.h>

#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/checkpoint/safetensors.h"
#include "tests/model/checkpoint/raw_safetensors.h"

namespace txl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A header over 8 bytes of data, and what the error is about.
struct HostileHeader {
  const char* test_name;
  std::string header;
  const char* about;
};

std::ostream& operator<<(std::ostream& out, const HostileHeader& hostile) {
  return out << hostile.header;
}

// One tensor of the name a.
std::string TensorA(const char* shape, const char* offsets = "[0,8]",
                    const char* dtype = "F32") {
  return absl::StrCat(R"({"a":{"dtype":")", dtype, R"(","shape":)", shape,
                      R"(,"data_offsets":)", offsets, "}}");
}

const HostileHeader kHostile[] = {
    {"Empty", "", "not a JSON object"},
    {"List", "[]", "not a JSON object"},
    {"SpaceFirst", " {}", "not a JSON object"},
    {"CutOff", R"({"a":{"dtype":"F32")", "not valid JSON"},
    {"TextAfterTheObject", R"({} x)", "not valid JSON"},
    {"NotUtf8Name",
     "{\"a\xff\xfe\":{\"dtype\":\"F32\",\"shape\":[2],"
     "\"data_offsets\":[0,8]}}",
     "UTF-8"},
    {"SameNameTwice",
     R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
     R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
     "twice"},
    {"SameFieldTwice",
     R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
     "twice"},
    {"TooDeep", TensorA("[[[[[[2]]]]]]"), "nested too deeply"},
    {"EmptyName", R"({"":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
     "name"},
    {"NulInName",
     R"({"a\u0000b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
     "name"},
    {"LineBreakInName",
     R"({"a\nb":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "name"},
    {"EntryIsNoObject", R"({"a":[1,2]})", "tensor a"},
    {"NoDtype", R"({"a":{"shape":[2],"data_offsets":[0,8]}})", "tensor a"},
    {"NoShape", R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", "tensor a"},
    {"NoOffsets", R"({"a":{"dtype":"F32","shape":[2]}})", "tensor a"},
    {"DtypeIsNoText", R"({"a":{"dtype":4,"shape":[2],"data_offsets":[0,8]}})",
     "tensor a"},
    {"UnknownDtype", TensorA("[1]", "[0,8]", "C64"), "dtype C64"},
    {"ShapeIsNoList", TensorA("2"), "sizes"},
    {"ShapeOfRankNine", TensorA("[2,1,1,1,1,1,1,1,1]"), "sizes"},
    {"NegativeShape", TensorA("[-2]"), "shape"},
    {"TwoNegativeShapes", TensorA("[-1,-2]"), "shape"},
    {"FractionInShape", TensorA("[2.0]"), "shape"},
    {"TextInShape", TensorA(R"(["2"])"), "shape"},
    {"ShapeBeyondInt64", TensorA("[18446744073709551615]"), "shape"},
    // 2^32 * 2^32 * 12 is 0 modulo 2^64.
    {"ProductOverflowsToZero", TensorA("[4294967296,4294967296,12]"),
     "overflows"},
    // A published product that comes out as 4 modulo 2^64.
    {"ProductOverflowsToFour",
     TensorA("[4194305,4194305,211106198978564]", "[0,8]", "U8"), "overflows"},
    // The element count fits, its bytes do not.
    {"BytesOverflow", TensorA("[2305843009213693953]", "[0,8]", "F64"),
     "overflows"},
    {"OffsetsContradictShape", TensorA("[1]"), "contradict"},
    {"OffsetsContradictDtype", TensorA("[2]", "[0,8]", "F64"), "contradict"},
    {"EmptyShapeWithBytes", TensorA("[0]"), "contradict"},
    {"OffsetsBeyondTheFile", TensorA("[4]", "[0,16]"), "beyond the file"},
    {"OffsetsFarBeyondTheFile",
     TensorA("[2]", "[18446744073709551608,18446744073709551615]"),
     "beyond the file"},
    {"OffsetsBackwards", TensorA("[2]", "[8,0]"), "tensor a"},
    {"NegativeOffset", TensorA("[2]", "[-8,0]"), "offsets"},
    {"FractionInOffset", TensorA("[2]", "[0,8.0]"), "offsets"},
    {"ThreeOffsets", TensorA("[2]", "[0,4,8]"), "offsets"},
    {"OffsetsAsText", TensorA("[2]", R"("0-8")"), "offsets"},
    {"Overlap",
     R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
     R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
     "overlaps"},
    {"TwoNamesForTheSameBytes",
     R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
     R"("b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
     "overlaps"},
    {"Hole",
     R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
     R"("b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
     "hole"},
    {"DataBeforeTheFirst", TensorA("[1]", "[4,8]"), "hole"},
    {"DataAfterTheLast", TensorA("[1]", "[0,4]"), "data that no tensor names"},
    {"DataWithoutTensors", "{}", "data that no tensor names"},
    {"MetadataIsNoObject", R"({"__metadata__":3})", "__metadata__"},
    {"MetadataHoldsANumber", R"({"__metadata__":{"a":1}})", "__metadata__"},
};

// The status of a file with this content; it never is OK.
absl::Status RefusalOf(const std::string& content) {
  const std::string path = WriteTempFile("hostile", content);
  const absl::Status status = SafetensorsReader::Open(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(status.message(), HasSubstr(path));
  return status;
}

class Hostile : public testing::TestWithParam<HostileHeader> {};

TEST_P(Hostile, IsRefusedSayingWhy) {
  const absl::Status status =
      RefusalOf(RawSafetensors(GetParam().header, std::string(8, '\0')));
  EXPECT_THAT(status.message(), HasSubstr(GetParam().about));
}

INSTANTIATE_TEST_SUITE_P(Headers, Hostile, testing::ValuesIn(kHostile),
                         [](const auto& info) {
                           return std::string(info.param.test_name);
                         });

TEST(HostileFiles, TheControlOfThisFileIsAccepted) {
  const std::string path = WriteTempFile(
      "good", RawSafetensors(TensorA("[2]"), std::string(8, '\0')));
  EXPECT_TRUE(SafetensorsReader::Open(path).ok());
}

TEST(HostileFiles, EveryCutOfAGoodFileIsRefused) {
  const std::string good = RawSafetensors(TensorA("[2]"), std::string(8, '\0'));
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    SCOPED_TRACE(bytes);
    EXPECT_FALSE(RefusalOf(good.substr(0, bytes)).ok());
  }
}

TEST(HostileFiles, DataBehindTheLastTensorIsRefused) {
  EXPECT_THAT(
      RefusalOf(RawSafetensors(TensorA("[2]"), std::string(9, '\0'))).message(),
      HasSubstr("data that no tensor names"));
}

std::string WithHeaderLength(uint64_t length) {
  std::string file = RawSafetensors(TensorA("[2]"), std::string(8, '\0'));
  for (int i = 0; i < 8; ++i) {
    file[i] = static_cast<char>((length >> (8 * i)) & 0xff);
  }
  return file;
}

TEST(HostileFiles, HeaderLengthsThatLieAreRefusedBeforeAnythingIsRead) {
  for (const uint64_t length :
       {uint64_t{0}, uint64_t{1}, uint64_t{100}, uint64_t{1} << 32,
        uint64_t{1} << 40, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 7}) {
    SCOPED_TRACE(length);
    EXPECT_THAT(RefusalOf(WithHeaderLength(length)).message(),
                HasSubstr("header"));
  }
}

TEST(HostileFiles, AHeaderAbove16MebibytesIsRefused) {
  std::string header = TensorA("[2]");
  header.resize((16 << 20) + 1, ' ');
  EXPECT_THAT(RefusalOf(RawSafetensors(header, std::string(8, '\0'))).message(),
              HasSubstr("16 MiB"));
}

TEST(HostileFiles, ManyTensorsWithoutBytesAreRefused) {
  std::vector<std::string> entries;
  for (int i = 0; i < 70'000; ++i) {
    entries.push_back(Entry(absl::StrCat(i), "U8", "[0]", 0, 0));
  }
  EXPECT_THAT(RefusalOf(RawSafetensors(Header(entries), "")).message(),
              HasSubstr("too many tensors"));
}

TEST(HostileFiles, NestingOfAHundredThousandLevelsIsRefused) {
  std::string header = "{\"a\":";
  header += std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_THAT(RefusalOf(RawSafetensors(header, "")).message(),
              HasSubstr("nested too deeply"));
}

TEST(HostileFiles, LongAndStrangeNamesDoNotReachTheMessage) {
  const std::string name =
      absl::StrCat("\\u001b[31m", std::string(100'000, 'n'));
  const std::string header = Header({Entry(name, "U8", "[8]", 0, 8)});
  const std::string message(
      RefusalOf(RawSafetensors(header, std::string(8, '\0'))).message());
  EXPECT_THAT(message, AllOf(HasSubstr("name"), Not(HasSubstr("\x1b"))));
  EXPECT_LT(message.size(), 600u);
}

TEST(HostileFiles, AFolderIsNoFile) {
  EXPECT_EQ(SafetensorsReader::Open(testing::TempDir()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(HostileFiles, APipeIsRefusedInsteadOfWaitedFor) {
  const std::string path = FreshTempFolder("pipe") + "/fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(SafetensorsReader::Open(path).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace txl
