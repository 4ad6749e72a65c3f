// Sessions that are forked, rewound, carried to another server or left by a
// server that was killed go on with the same bits as sessions that were fed
// from the start.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/turns.h"

namespace txl::testing {
namespace {

constexpr int64_t kAtATime = 4096;
// What its tokens are fed with depends on all ids of the session.
constexpr char kMusic[] = "musicautobot";

void Feed(Client& client, const std::string& id,
          absl::Span<const uint32_t> ids) {
  for (size_t at = 0; at < ids.size(); at += kAtATime) {
    const auto fed = Append(client, id, ids.subspan(at, kAtATime));
    ASSERT_TRUE(fed.ok()) << fed.status();
  }
}

// What the session says of tokens that it has not seen, and of what it would
// go on with; it is changed by that.
std::vector<float> Continuation(Client& client, const std::string& id,
                                int64_t vocabulary) {
  const std::vector<uint32_t> next = RandomIds(77, 20, vocabulary);
  std::vector<float> bits;
  const auto fed = Append(client, id, next, true);
  EXPECT_TRUE(fed.ok()) << fed.status();
  if (!fed.ok()) return bits;
  for (const v1::ScoredToken& token : fed->scored()) {
    bits.push_back(token.logprob());
  }
  const TurnOutput turn = RunTurn(client, Greedy(id, {}, 8));
  EXPECT_TRUE(turn.status.ok()) << turn.status;
  bits.insert(bits.end(), turn.logprobs.begin(), turn.logprobs.end());
  return bits;
}

// By the model's directory; empty: the repository's.
class Branches : public ::testing::TestWithParam<std::string> {
 protected:
  static std::string Model() {
    return GetParam().empty() ? ShippedModel() : GoldenModel(GetParam());
  }

  void SetUp() override {
    const auto model = server_.client().GetModel();
    ASSERT_TRUE(model.ok()) << model.status();
    vocabulary_ = model->vocabulary_size();
    memory_ = model->memory_length();
    window_ = model->window();
    ids_ = RandomIds(5, 11 * memory_ + 50, vocabulary_);
    if (GetParam() != kMusic) return;
    // Separators, each before an id that counts for all that follow.
    for (size_t i = 1; i < ids_.size(); i += 7) ids_[i] = 8;
  }

  absl::Span<const uint32_t> First(int64_t count) const {
    return absl::MakeSpan(ids_).first(count);
  }

  // Of a session fed with the first ids from the start, on this server.
  std::vector<float> Straight(int64_t count) {
    const std::string id = absl::StrCat("straight-", count);
    CreateSession(server_.client(), id);
    Feed(server_.client(), id, First(count));
    return Continuation(server_.client(), id, vocabulary_);
  }

  // Lengths to go back by: within a step's window, beyond it, beyond all that
  // a slot remembers.
  std::vector<int64_t> Distances() const {
    return {1, window_, memory_, 10 * memory_};
  }

  int64_t Count() const { return static_cast<int64_t>(ids_.size()); }

  ServerProcess server_{Model(), {"--slots", "2"}};
  int64_t vocabulary_ = 0;
  int64_t memory_ = 0;
  int64_t window_ = 0;
  std::vector<uint32_t> ids_;
};

TEST_P(Branches, AForkAndItsParentGoOnAsIfFedFromTheStart) {
  Client& client = server_.client();
  CreateSession(client, "parent");
  Feed(client, "parent", First(Count()));
  v1::ForkSessionRequest fork;
  fork.set_session_id("parent");
  fork.set_new_session_id("all");
  ASSERT_TRUE(client.ForkSession(fork).ok());
  for (const int64_t back : Distances()) {
    fork.set_new_session_id(absl::StrCat("back-", back));
    fork.set_position(Count() - back);
    ASSERT_TRUE(client.ForkSession(fork).ok());
  }
  const std::vector<float> straight = Straight(Count());
  EXPECT_EQ(Continuation(client, "all", vocabulary_), straight);
  EXPECT_EQ(Continuation(client, "parent", vocabulary_), straight);
  for (const int64_t back : Distances()) {
    EXPECT_EQ(Continuation(client, absl::StrCat("back-", back), vocabulary_),
              Straight(Count() - back))
        << back;
  }
}

TEST_P(Branches, ARewoundSessionHasNeverGoneOn) {
  Client& client = server_.client();
  for (const int64_t back : Distances()) {
    const std::string id = absl::StrCat("s-", back);
    CreateSession(client, id);
    Feed(client, id, First(Count()));
    v1::RewindSessionRequest rewind;
    rewind.set_session_id(id);
    rewind.set_position(Count() - back);
    ASSERT_TRUE(client.RewindSession(rewind).ok());
    EXPECT_EQ(Continuation(client, id, vocabulary_), Straight(Count() - back))
        << back;
  }
}

absl::Status Export(Client& client, const std::string& id, bool state,
                    std::string* file) {
  v1::ExportSessionRequest request;
  request.set_session_id(id);
  request.set_include_state(state);
  return client.ExportSession(request, {}, [file](absl::string_view chunk) {
    absl::StrAppend(file, chunk);
    return absl::OkStatus();
  });
}

absl::Status Import(Client& client, const std::string& id,
                    const std::string& file) {
  v1::ImportSessionRequest request;
  request.set_session_id(id);
  std::string rest = file;
  return client
      .ImportSession(request, {},
                     [&]() -> absl::StatusOr<std::string> {
                       return std::exchange(rest, "");
                     })
      .status();
}

TEST_P(Branches, AnExportGoesOnElsewhereWithTheSameBits) {
  const std::string key = ::testing::TempDir() + "/export.key";
  std::ofstream(key) << std::string(32, 'k');
  ASSERT_EQ(chmod(key.c_str(), 0600), 0);
  ServerProcess here(
      Model(), {"--slots", "2", "--threads", "1", "--export-key-file", key});
  ServerProcess there(
      Model(), {"--slots", "3", "--threads", "2", "--export-key-file", key});
  CreateSession(here.client(), "s");
  Feed(here.client(), "s", First(Count()));
  std::string with_state;
  std::string ids_only;
  ASSERT_TRUE(Export(here.client(), "s", true, &with_state).ok());
  ASSERT_TRUE(Export(here.client(), "s", false, &ids_only).ok());
  EXPECT_GT(with_state.size(), ids_only.size());
  const std::vector<float> straight = Straight(Count());
  for (const std::string& file : {with_state, ids_only}) {
    const std::string id = absl::StrCat("from-", file.size());
    const absl::Status imported = Import(there.client(), id, file);
    ASSERT_TRUE(imported.ok()) << imported;
    EXPECT_EQ(Continuation(there.client(), id, vocabulary_), straight);
    // A server without the key takes the ids.
    ASSERT_TRUE(Import(server_.client(), id, file).ok());
    EXPECT_EQ(Continuation(server_.client(), id, vocabulary_), straight);
  }
  // The session stayed where it was.
  EXPECT_EQ(Continuation(here.client(), "s", vocabulary_), straight);
}

TEST_P(Branches, AKilledServersSessionGoesOnAsIfFedFromTheStart) {
  const std::string data =
      absl::StrCat(::testing::TempDir(), "/killed-", GetParam());
  std::filesystem::remove_all(data);
  const std::vector<std::string> flags = {
      "--slots", "1", "--data-dir", data, "--snapshot-tokens", "40"};
  const int64_t fed = Count() - 30;
  {
    ServerProcess server(Model(), flags);
    CreateSession(server.client(), "s");
    Feed(server.client(), "s", First(fed));
    // Out of the slot, and back in.
    CreateSession(server.client(), "other");
    Feed(server.client(), "other", First(10));
    Feed(server.client(), "s", absl::MakeSpan(ids_).subspan(fed));
    server.Signal(SIGKILL);
    server.Wait();
  }
  ServerProcess server(Model(), flags);
  EXPECT_EQ(Continuation(server.client(), "s", vocabulary_), Straight(Count()));
  EXPECT_EQ(Continuation(server.client(), "other", vocabulary_), Straight(10));
}

INSTANTIATE_TEST_SUITE_P(Models, Branches, ::testing::Values("", kMusic),
                         [](const auto& info) {
                           return info.param.empty() ? "shipped" : info.param;
                         });

TEST(BranchesTest, AnExportDoesNotGoOntoAnotherModel) {
  ServerProcess server(ShippedModel(), {"--slots", "2"});
  CreateSession(server.client(), "s");
  ASSERT_TRUE(Append(server.client(), "s", std::vector<uint32_t>(20, 1)).ok());
  std::string file;
  ASSERT_TRUE(Export(server.client(), "s", false, &file).ok());
  ServerProcess other(GoldenModel("kimi-char"));
  ExpectError(Import(other.client(), "s", file),
              absl::StatusCode::kFailedPrecondition, "MODEL_MISMATCH");
}

}  // namespace
}  // namespace txl::testing
