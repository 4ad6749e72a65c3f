#include "server/session/session_export.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "model/base/crc32c.h"
#include "tests/server/session/export_fixture.h"

namespace txl {
namespace {

std::string Number(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i, value >>= 8) {
    out.push_back(static_cast<char>(value & 0xFF));
  }
  return out;
}

std::string Text(const std::string& text) {
  return Number(text.size(), 4) + text;
}

std::string Section(int kind, const std::string& payload) {
  std::string out = Number(static_cast<uint64_t>(kind), 4) +
                    Number(payload.size(), 8) + payload;
  if (payload.empty()) return out;
  return out + Number(ExtendCrc32c(0, payload.data(), payload.size()), 4);
}

std::string Sha256(const std::string& bytes) {
  std::string out(32, '\0');
  EVP_Digest(bytes.data(), bytes.size(),
             reinterpret_cast<unsigned char*>(out.data()), nullptr,
             EVP_sha256(), nullptr);
  return out;
}

std::string Hmac(const std::string& key, const std::string& bytes) {
  std::string out(32, '\0');
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
       reinterpret_cast<unsigned char*>(out.data()), nullptr);
  return out;
}

std::string TurnPayload() {
  return Text("\xE2\x82") + Text("request") + Text("MAX_TOKENS") +
         Number(10, 8) + Number(20, 8) + Number(30, 8) + Number(1, 8) +
         Number(~uint64_t{0}, 8) + Number(3, 8);
}

// The file as session_export.h describes it, put together by hand.
TEST(SessionExport, WritesTheFormat) {
  const int64_t ttl = int64_t{5} * 3600 * 1'000'000'000 + 7;
  std::string file =
      "TXLS" + Number(1, 4) +
      Section(1, Text("model") + Number(300, 8) + Number(3, 8) +
                     Number(static_cast<uint64_t>(ttl), 8) + Number(0, 4)) +
      Section(2, Number(5, 2) + Number(0, 2) + Number(299, 2)) +
      Section(3, TurnPayload());
  file += Section(5, Sha256(file));
  EXPECT_EQ(ExportAll({"model", 300, ""}, {5, 0, 299}), file);
}

TEST(SessionExport, WritesAStateAndAMac) {
  const auto state = ExportedState(5, 2);
  const std::string head = Number(1, 4) + Text("model") + Number(7, 8) +
                           Number(0, 24) + Number(0, 1) + Text("bf16") +
                           Text("torch-cpu") + Number(2, 8) + Number(1, 8) +
                           Number(state->checksum, 8);
  const int64_t ttl = int64_t{5} * 3600 * 1'000'000'000 + 7;
  std::string file =
      "TXLS" + Number(1, 4) +
      Section(1, Text("model") + Number(256, 8) + Number(2, 8) +
                     Number(static_cast<uint64_t>(ttl), 8) + Number(3, 4)) +
      Section(2, "\xFF\x01") + Section(3, TurnPayload()) +
      Section(4, head + std::string(state->data.begin(), state->data.end()));
  file += Section(5, Sha256(file));
  file += Section(6, Hmac("key", file));
  EXPECT_EQ(ExportAll({"model", 256, "key"}, {255, 1}, state), file);
}

TEST(SessionExport, AnIdTakesTheBytesThatTheVocabularyNeeds) {
  EXPECT_EQ(ExportIdBytes(0), 1);
  EXPECT_EQ(ExportIdBytes(256), 1);
  EXPECT_EQ(ExportIdBytes(257), 2);
  EXPECT_EQ(ExportIdBytes(65'536), 2);
  EXPECT_EQ(ExportIdBytes(65'537), 3);
  EXPECT_EQ(ExportIdBytes(1 << 24), 3);
  EXPECT_EQ(ExportIdBytes((1 << 24) + 1), 4);
  EXPECT_EQ(ExportIdBytes(int64_t{1} << 31), 4);
}

TEST(SessionExport, DoesNotTellTheSessionsName) {
  EXPECT_EQ(ExportAll({"model", 300, "key"}, {1}).find("secret"),
            std::string::npos);
}

TEST(SessionExport, ComesInFullPieces) {
  TokenSequence ids;
  ids.Append(RandomTokens(900'000, 100'000));  // 2.7 MB
  SessionExport session({"model", 100'000, ""}, ExportedHead(),
                        ids.Slice(0, ids.size()), ExportedState(3 << 20, 5));
  std::vector<size_t> sizes;
  for (std::string piece = session.Next(); !piece.empty();
       piece = session.Next()) {
    sizes.push_back(piece.size());
  }
  ASSERT_EQ(sizes.size(), 6u);
  for (size_t i = 0; i + 1 < sizes.size(); ++i) EXPECT_EQ(sizes[i], 1u << 20);
}

TEST(SessionExport, ExportsTheIdsOfTheSliceWhateverFollows) {
  TokenSequence ids;
  ids.Append(RandomTokens(10'000, 50));
  const TokenSlice slice = ids.Slice(0, 9'000);
  SessionExport session({"model", 50, ""}, ExportedHead(), slice, nullptr);
  ids.Append(RandomTokens(10'000, 50));
  std::string file = session.Next();
  const auto imported =
      ImportAll(ImportOptionsFor({"model", 50, ""}), file + session.Next());
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(IdsOf(*imported), slice.Copy());
}

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
