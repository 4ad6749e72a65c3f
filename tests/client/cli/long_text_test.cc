#include "client/cli/long_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/client/fake_service.h"

namespace txl::cli {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::FakeServer;
using ::testing::IsEmpty;

// A text as its pieces.
std::vector<absl::string_view> SplitText(absl::string_view text,
                                         size_t max_bytes) {
  std::vector<absl::string_view> pieces;
  while (!text.empty()) {
    pieces.push_back(FirstPiece(text, max_bytes));
    text.remove_prefix(pieces.back().size());
  }
  return pieces;
}

TEST(FirstPiece, AShortTextIsOnePiece) {
  EXPECT_THAT(SplitText("one\ntwo", 7), ElementsAre("one\ntwo"));
  EXPECT_THAT(SplitText("", 7), IsEmpty());
}

TEST(FirstPiece, CutsAfterTheLastLineEndThatFits) {
  EXPECT_THAT(SplitText("aa\nbb\ncc dd", 7), ElementsAre("aa\nbb\n", "cc dd"));
  EXPECT_THAT(SplitText("aaa\nb", 4), ElementsAre("aaa\n", "b"));
}

TEST(FirstPiece, CutsALongLineBeforeASpace) {
  EXPECT_THAT(SplitText("one two three", 8), ElementsAre("one two", " three"));
  EXPECT_THAT(SplitText("abcd efg", 4), ElementsAre("abcd", " efg"));
}

TEST(FirstPiece, CutsALongWordAtACharactersBorder) {
  // e with acute is two bytes, the emoji four.
  EXPECT_THAT(SplitText("abc\xc3\xa9z", 4), ElementsAre("abc", "\xc3\xa9z"));
  EXPECT_THAT(SplitText("\xf0\x9f\x98\x80\xf0\x9f\x98\x80", 4),
              ElementsAre("\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"));
}

TEST(FirstPiece, PiecesFitAndTogetherAreTheText) {
  std::string text;
  for (int i = 0; i < 500; ++i) {
    text += std::string(i % 23, 'x') + (i % 3 == 0 ? "\n" : " \xc3\xa9");
  }
  for (size_t max_bytes : {4, 5, 16, 100, 1000}) {
    std::string joined;
    for (absl::string_view piece : SplitText(text, max_bytes)) {
      EXPECT_LE(piece.size(), max_bytes);
      EXPECT_FALSE(piece.empty());
      joined += std::string(piece);
    }
    EXPECT_EQ(joined, text);
  }
}

TEST(FirstPiece, DoesNotHangOnBytesThatAreNoUtf8) {
  const std::string text(100, '\x80');
  size_t bytes = 0;
  for (absl::string_view piece : SplitText(text, 8)) bytes += piece.size();
  EXPECT_EQ(bytes, text.size());
}

TEST(CountCharacters, CountsCodePoints) {
  EXPECT_EQ(CountCharacters(""), 0);
  EXPECT_EQ(CountCharacters("abc\n"), 4);
  EXPECT_EQ(CountCharacters("\xc3\xa9\xf0\x9f\x98\x80"), 2);
}

const std::string kText = "one two three\nfour five six\nseven eight nine";

// Against the fake, whose tokens are bytes.
class LongText : public ::testing::Test {
 protected:
  LongText() {
    ChannelOptions options = {.address = server_.address()};
    client_ = *Client::Create(options);
  }

  // A request of kText to a new session, "mine".
  v1::GenerateRequest RequestOfMine() {
    v1::CreateSessionRequest create;
    create.set_session_id("mine");
    EXPECT_TRUE(client_->CreateSession(create).ok());
    v1::GenerateRequest request;
    request.set_session_id("mine");
    request.set_text(kText);
    return request;
  }

  absl::Status Generate(const v1::GenerateRequest& request) {
    text_.clear();
    return GenerateAfterPrompt(*client_, {}, request, {},
                               [&](const v1::GenerateResponse& response) {
                                 text_ += response.token().text();
                               });
  }

  FakeServer server_;
  std::unique_ptr<Client> client_;
  std::string text_;
};

std::vector<uint32_t> BytesOf(const std::string& text) {
  return std::vector<uint32_t>(text.begin(), text.end());
}

TEST_F(LongText, IsTokenizedInPiecesThatTheServersLimitsAllow) {
  server_->max_prompt_bytes = 30;
  server_->max_prompt_tokens = 9;
  const auto ids = TokenizeAll(*client_, kText, v1::UNKNOWN_TEXT_SKIP, {});
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(*ids, BytesOf(kText));
  size_t pieces = 0;
  for (const testing::SeenCall& call : server_->calls()) {
    if (call.method != "Tokenize") continue;
    ++pieces;
    EXPECT_EQ(call.unknown, v1::UNKNOWN_TEXT_SKIP);
  }
  EXPECT_GE(pieces, kText.size() / 9);
}

TEST_F(LongText, OfTheSmallestPiecesFailsAsTheServerSays) {
  server_->max_prompt_tokens = 1;
  EXPECT_EQ(TokenizeAll(*client_, kText, {}, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(LongText, APromptThatFitsIsOneCall) {
  v1::GenerateRequest request;
  request.set_text(kText);
  ASSERT_TRUE(Generate(request).ok());
  EXPECT_EQ(text_, "Hello");
  EXPECT_EQ(server_->calls().size(), 1u);
}

TEST_F(LongText, ALongPromptIsFedBeforeTheTurn) {
  server_->max_prompt_tokens = 20;
  for (const bool as_tokens : {false, true}) {
    v1::GenerateRequest request;
    request.mutable_stop()->set_max_tokens(5);
    if (as_tokens) {
      for (const uint32_t id : BytesOf(kText)) {
        request.mutable_tokens()->add_ids(id);
      }
    } else {
      request.set_text(kText);
    }
    const absl::Status status = Generate(request);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(text_, "Hello");
    EXPECT_THAT(server_->append_sizes(), Each(20));
    const v1::GenerateRequest last = server_->generate_requests().back();
    EXPECT_EQ(last.tokens().ids_size(), static_cast<int>(kText.size() % 20));
    EXPECT_EQ(last.tokens().ids(0), static_cast<uint32_t>(kText[40]));
    EXPECT_EQ(last.stop().max_tokens(), 5);
    EXPECT_EQ(last.expected_position(), 40);
    EXPECT_THAT(server_->sessions(), IsEmpty());
  }
}

TEST_F(LongText, ALongPromptOfASessionStaysInIt) {
  server_->max_prompt_tokens = 20;
  const v1::GenerateRequest request = RequestOfMine();
  ASSERT_TRUE(Generate(request).ok());
  // The fake keeps an x for each token of the turn: four fed, five said.
  EXPECT_EQ(server_->sessions().at("mine"),
            BytesOf(kText.substr(0, 40) + std::string(4 + 5, 'x')));
}

// A turn that is sent again feeds nothing twice, wherever the first attempt
// stopped.
class NamedLongText : public LongText {
 protected:
  NamedLongText() {
    server_->max_prompt_tokens = 20;
    request_ = RequestOfMine();
    request_.set_request_id("turn-1");
  }
  // As in ALongPromptOfASessionStaysInIt.
  void ExpectFedOnce() {
    EXPECT_EQ(server_->sessions().at("mine"),
              BytesOf(kText.substr(0, 40) + std::string(4 + 5, 'x')));
  }

  v1::GenerateRequest request_;
};

TEST_F(NamedLongText, IsReplayedOnceItIsDone) {
  ASSERT_TRUE(Generate(request_).ok());
  const absl::Status again = Generate(request_);
  ASSERT_TRUE(again.ok()) << again;
  EXPECT_EQ(text_, "Hello");
  ExpectFedOnce();
}

TEST_F(NamedLongText, ExpectsThePositionsOfTheFirstAttempt) {
  request_.set_expected_position(0);
  ASSERT_TRUE(Generate(request_).ok());
  EXPECT_EQ(server_->generate_requests().back().expected_position(), 40);
  const absl::Status again = Generate(request_);
  ASSERT_TRUE(again.ok()) << again;
  EXPECT_EQ(server_->generate_requests().back().expected_position(), 40);
  ExpectFedOnce();
}

TEST_F(NamedLongText, GoesOnBehindThePartsThatWereFed) {
  v1::AppendTokensRequest first;  // what an attempt has fed that was stopped
  first.set_session_id("mine");
  first.set_request_id("turn-1_p0");
  for (const uint32_t id : BytesOf(kText.substr(0, 20))) {
    first.mutable_tokens()->add_ids(id);
  }
  ASSERT_TRUE(client_->AppendTokens(first).ok());
  const absl::Status status = Generate(request_);
  ASSERT_TRUE(status.ok()) << status;
  ExpectFedOnce();
}

TEST_F(NamedLongText, IsRefusedWhereItsPartsCouldNotBeTold) {
  request_.set_request_id(std::string(61, 'a'));
  EXPECT_EQ(Generate(request_).message(),
            "request_id: must have at most 60 characters for a prompt that "
            "takes several calls");
  request_.set_request_id("turn-1");
  request_.set_text(std::string(400, 'a'));
  EXPECT_EQ(Generate(request_).message(),
            "request_id: the prompt takes 20 calls; under a name it can take "
            "17: append its beginning first");
  EXPECT_THAT(server_->sessions().at("mine"), IsEmpty());
}

// Before anything is fed.
TEST_F(LongText, AMistakeInTheRestOfTheRequestLeavesTheSessionAsItIs) {
  server_->max_prompt_tokens = 20;
  v1::GenerateRequest request = RequestOfMine();
  server_->on_generate = [](grpc::ServerContext*,
                            const v1::GenerateRequest& seen,
                            testing::FakeService::Writer*) {
    return seen.has_text()
               ? testing::FakeError(grpc::INVALID_ARGUMENT, "too many",
                                    "OVER_LIMIT", "text")
               : testing::FakeError(grpc::INVALID_ARGUMENT, "too hot",
                                    "FIELD_INVALID", "sampling.temperature");
  };
  EXPECT_EQ(Generate(request).message(), "too hot");
  EXPECT_THAT(server_->sessions().at("mine"), IsEmpty());
  server_->on_generate = nullptr;
  request.mutable_tokens()->mutable_ids()->Resize(30, 65);
  request.mutable_tokens()->set_ids(25, 256);
  EXPECT_EQ(Generate(request).message(),
            "tokens.ids[25]: must be in [0, 256), is 256");
  EXPECT_THAT(server_->sessions().at("mine"), IsEmpty());
}

TEST_F(LongText, OtherErrorsAreTheTurns) {
  server_->on_generate = [](grpc::ServerContext*, const v1::GenerateRequest&,
                            testing::FakeService::Writer*) {
    return testing::FakeError(grpc::INVALID_ARGUMENT, "too many", "OVER_LIMIT",
                              "stop.max_tokens");
  };
  v1::GenerateRequest request;
  request.set_text(kText);
  EXPECT_EQ(Generate(request).message(), "too many");
  EXPECT_EQ(server_->calls().size(), 1u);
}

}  // namespace
}  // namespace txl::cli
