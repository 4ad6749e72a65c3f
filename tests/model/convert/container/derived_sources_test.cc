#include <filesystem>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/base/crc32c.h"
#include "model/convert/container/byte_source.h"
#include "tests/model/checkpoint/raw_safetensors.h"
#include "tests/model/convert/container/checkpoint_check.h"

namespace txl {
namespace {

using ::testing::HasSubstr;
using Source = std::shared_ptr<const ByteSource>;

std::string ReadPart(const ByteSource& source, uint64_t offset, size_t bytes) {
  std::string part(bytes, '\0');
  const absl::Status read = source.Read(
      offset, absl::MakeSpan(reinterpret_cast<uint8_t*>(part.data()), bytes));
  return read.ok() ? part : read.ToString();
}

uint32_t Crc(const std::string& bytes) {
  return ExtendCrc32c(0, bytes.data(), bytes.size());
}

// Counts what is read of it.
class Counted : public ByteSource {
 public:
  explicit Counted(std::string bytes)
      : bytes_(BytesInMemory(std::move(bytes), "memory")) {}
  uint64_t size() const override { return bytes_->size(); }
  const std::string& name() const override { return bytes_->name(); }
  absl::Status Read(uint64_t offset, absl::Span<uint8_t> out) const override {
    read_ += out.size();
    largest_ = std::max<uint64_t>(largest_, out.size());
    return bytes_->Read(offset, out);
  }
  uint64_t read() const { return read_; }
  uint64_t largest() const { return largest_; }

 private:
  const Source bytes_;
  mutable uint64_t read_ = 0;
  mutable uint64_t largest_ = 0;
};

TEST(WithCrc32c, GivesBytesWhoseChecksumIsRight) {
  const Source good =
      WithCrc32c(BytesInMemory("0123456789", "t"), Crc("0123456789"));
  EXPECT_EQ(good->size(), 10u);
  EXPECT_EQ(good->name(), "t");
  EXPECT_EQ(ReadPart(*good, 3, 4), "3456");
  EXPECT_EQ(ReadAll(*good), "0123456789");
  EXPECT_THAT(ReadPart(*good, 8, 3), HasSubstr("t"));
}

TEST(WithCrc32c, RefusesEveryReadWhenItIsWrong) {
  const Source bad =
      WithCrc32c(BytesInMemory("0123456780", "t"), Crc("0123456789"));
  EXPECT_THAT(ReadPart(*bad, 0, 10), HasSubstr("t: its checksum is wrong"));
  EXPECT_THAT(ReadPart(*bad, 0, 1), HasSubstr("t: its checksum is wrong"));
  EXPECT_THAT(ReadPart(*bad, 4, 2), HasSubstr("t: its checksum is wrong"));
}

TEST(WithCrc32c, VerifiesOnceInSmallSteps) {
  const std::string bytes(3'500'000, 'x');
  const auto counted = std::make_shared<Counted>(bytes);
  const Source checked = WithCrc32c(counted, Crc(bytes));
  EXPECT_EQ(ReadPart(*checked, 5, 3), "xxx");
  EXPECT_EQ(counted->read(), bytes.size() + 3);
  EXPECT_LE(counted->largest(), 1u << 20);
  EXPECT_EQ(ReadPart(*checked, 9, 2), "xx");
  EXPECT_EQ(counted->read(), bytes.size() + 5);
}

TEST(WithCrc32c, AReadOfEverythingNeedsNoSecond) {
  const auto counted = std::make_shared<Counted>("abc");
  const Source checked = WithCrc32c(counted, Crc("abc"));
  EXPECT_EQ(ReadAll(*checked), "abc");
  EXPECT_EQ(counted->read(), 3u);
}

TEST(Joined, ReadsAcrossParts) {
  const Source joined =
      Joined({BytesInMemory("abc", "1"), BytesInMemory("", "2"),
              BytesInMemory("de", "3"), BytesInMemory("fghi", "4")},
             "all");
  EXPECT_EQ(joined->size(), 9u);
  EXPECT_EQ(joined->name(), "all");
  const std::string whole = "abcdefghi";
  for (size_t begin = 0; begin <= whole.size(); ++begin) {
    for (size_t bytes = 0; begin + bytes <= whole.size(); ++bytes) {
      EXPECT_EQ(ReadPart(*joined, begin, bytes), whole.substr(begin, bytes));
    }
  }
  EXPECT_THAT(ReadPart(*joined, 8, 2), HasSubstr("all"));
  EXPECT_THAT(ReadPart(*joined, UINT64_MAX, 2), HasSubstr("all"));
}

TEST(Joined, OfNothingIsEmpty) {
  const Source joined = Joined({}, "none");
  EXPECT_EQ(joined->size(), 0u);
  EXPECT_EQ(ReadPart(*joined, 0, 0), "");
  EXPECT_THAT(ReadPart(*joined, 0, 1), HasSubstr("none"));
}

TEST(ReopenedFile, ReadsWithoutStayingOpen) {
  const std::string path = WriteTempFile("reopened", "abcdef");
  const Source file = ReopenedFile(path, 6);
  EXPECT_EQ(file->size(), 6u);
  EXPECT_EQ(ReadPart(*file, 2, 3), "cde");
  EXPECT_THAT(ReadPart(*file, 5, 2), HasSubstr(path));
  WriteTempFile("reopened", "abcdefg");
  EXPECT_THAT(ReadPart(*file, 0, 1), HasSubstr("changed its size"));
  std::filesystem::remove(path);
  EXPECT_THAT(ReadPart(*file, 0, 1), HasSubstr(path));
}

}  // namespace
}  // namespace txl
