#include "server/session/state_head.h"

#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/server/session/export_fixture.h"

namespace txl {
namespace {

StateImage SealedImage() {
  StateImage image;
  image.identity = {.fingerprint = "model",
                    .window = 7,
                    .mem_len = 5,
                    .d_model = 4,
                    .n_layer = 3,
                    .zero_start = true,
                    .row_dtype = "f32",
                    .kernel = "torch-cpu"};
  image.position = 9;
  image.rows = 2;
  image.data.assign(3 * 2 * 4 * 4, 11);
  image.Seal();
  return image;
}

std::string HeadOf(const StateImage& image) {
  ByteWriter out;
  WriteStateHead(image, out);
  return out.Take();
}

// With its data the image that comes back is one that a server imports.
TEST(StateHead, ComesBackWithAllThatTheChecksumCovers) {
  const StateImage image = SealedImage();
  const std::string bytes = HeadOf(image);
  ByteReader in(bytes);
  StateImage back;
  back.data = image.data;
  ReadStateHead(in, back);
  EXPECT_TRUE(in.done());
  EXPECT_EQ(back.identity, image.identity);
  EXPECT_EQ(back.data, image.data);
  EXPECT_TRUE(CheckStateImage(back, image.identity).ok());
}

TEST(StateHead, AHeadThatEndsTooEarlyIsNoticed) {
  const std::string bytes = HeadOf(SealedImage());
  for (size_t size = 0; size < bytes.size(); ++size) {
    ByteReader in(absl::string_view(bytes).substr(0, size));
    StateImage image;
    ReadStateHead(in, image);
    EXPECT_FALSE(in.ok()) << size;
  }
}

// What is wrong with a head's fields shows in the check of the image.
TEST(StateHead, AFlippedByteMakesAnotherImage) {
  const StateImage image = SealedImage();
  const std::string bytes = HeadOf(image);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0xFF);
    ByteReader in(damaged);
    StateImage back;
    back.data = image.data;
    ReadStateHead(in, back);
    // A truth value of 0 or 1 is the same in other bits.
    const bool same =
        in.done() && back.identity == image.identity &&
        back.checksum == image.checksum && back.position == image.position &&
        back.rows == image.rows && back.format_version == image.format_version;
    EXPECT_TRUE(same || !in.done() ||
                !CheckStateImage(back, image.identity).ok())
        << i;
  }
}

TEST(ExportFields, AHeadOrTurnThatEndsTooEarlyIsNone) {
  ExportHead head;
  head.fingerprint = "model";
  const std::string head_bytes = EncodeExportHead(head);
  for (size_t size = 0; size < head_bytes.size(); ++size) {
    EXPECT_FALSE(DecodeExportHead(head_bytes.substr(0, size))) << size;
  }
  EXPECT_TRUE(DecodeExportHead(head_bytes));
  EXPECT_FALSE(DecodeExportHead(head_bytes + '\0'));
  StoredHead turn = ExportedHead();
  turn.earlier_requests.clear();
  const std::string turn_bytes = EncodeExportTurn(turn);
  for (size_t size = 0; size < turn_bytes.size(); ++size) {
    EXPECT_FALSE(DecodeExportTurn(turn_bytes.substr(0, size), turn)) << size;
  }
  EXPECT_TRUE(DecodeExportTurn(turn_bytes, turn));
  // The earlier requests that may follow have eight bytes each.
  EXPECT_FALSE(DecodeExportTurn(turn_bytes + std::string(7, '\0'), turn));
  EXPECT_TRUE(DecodeExportTurn(turn_bytes + std::string(8, '\0'), turn));
}

}  // namespace
}  // namespace txl
