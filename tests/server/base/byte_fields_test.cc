#include "server/base/byte_fields.h"

#include <cstdint>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace txl {
namespace {

std::string Fields() {
  ByteWriter out;
  out.U8(200);
  out.U32(0x01020304);
  out.U64(std::numeric_limits<uint64_t>::max());
  out.I64(-2);
  out.Text("text");
  return out.Take();
}

TEST(ByteFields, ComeBackInTheirOrder) {
  const std::string bytes = Fields();
  ByteReader in(bytes);
  EXPECT_EQ(in.U8(), 200);
  EXPECT_EQ(in.U32(), 0x01020304u);
  EXPECT_EQ(in.U64(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(in.I64(), -2);
  EXPECT_FALSE(in.done());
  EXPECT_EQ(in.Text(), "text");
  EXPECT_TRUE(in.done());
}

TEST(ByteFields, AreLittleEndian) {
  EXPECT_EQ(Fields().substr(1, 4), "\x04\x03\x02\x01");
  EXPECT_EQ(Fields().substr(21), std::string("\x04\0\0\0text", 8));
}

TEST(ByteFields, NothingIsReadBehindTheEnd) {
  const std::string bytes = Fields();
  for (size_t size = 0; size < bytes.size(); ++size) {
    ByteReader in(absl::string_view(bytes).substr(0, size));
    in.U8();
    in.U32();
    in.U64();
    in.I64();
    EXPECT_EQ(in.Text(), "") << size;
    EXPECT_FALSE(in.ok()) << size;
    EXPECT_EQ(in.U8(), 0) << size;
  }
}

TEST(ByteFields, ATextLongerThanTheRestIsNotBelieved) {
  ByteWriter out;
  out.U32(0xFFFFFFFF);
  ByteReader in(out.bytes());
  EXPECT_EQ(in.Text(), "");
  EXPECT_FALSE(in.ok());
}

}  // namespace
}  // namespace txl
