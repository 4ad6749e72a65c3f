// ExportSession and ImportSession as clients see them.

#include <gmock/gmock.h>

#include <numeric>

#include "tests/server/rpc/rpc_world.h"

namespace txl {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Le;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

const std::string kKey(32, 'k');

RpcWorldOptions WithKey(const std::string& key) {
  RpcWorldOptions options;
  options.export_key = key;
  return options;
}

struct Exported {
  grpc::Status status;
  std::string file;
  std::vector<size_t> chunks;  // bytes of each
};

Exported Export(RpcWorld& world, const std::string& request,
                const std::string& metadata = "") {
  grpc::ClientContext client;
  if (!metadata.empty()) client.AddMetadata("x-txl-session", metadata);
  const auto reader = world.sessions->ExportSession(
      &client, Proto<v1::ExportSessionRequest>(request));
  Exported exported;
  v1::ExportSessionResponse response;
  while (reader->Read(&response)) {
    exported.file += response.chunk();
    exported.chunks.push_back(response.chunk().size());
  }
  exported.status = reader->Finish();
  return exported;
}

struct Imported {
  grpc::Status status;
  v1::Session session;
};

// `first`: the first message, without a chunk; then the file, in parts.
Imported Import(RpcWorld& world, const std::string& first,
                const std::string& file, size_t part = 1000) {
  grpc::ClientContext client;
  v1::ImportSessionResponse response;
  const auto writer = world.sessions->ImportSession(&client, &response);
  writer->Write(Proto<v1::ImportSessionRequest>(first));
  for (size_t at = 0; at < file.size(); at += part) {
    v1::ImportSessionRequest message;
    message.set_chunk(file.substr(at, part));
    if (!writer->Write(message)) break;
  }
  writer->WritesDone();
  return {.status = writer->Finish(), .session = response.session()};
}

std::vector<int32_t> Letters(int count) {
  std::vector<int32_t> ids(count);
  for (int i = 0; i < count; ++i) ids[i] = 'a' + i % 26;
  return ids;
}

std::vector<int32_t> TokensOf(RpcWorld& world, const std::string& id) {
  return world.store->GetTokens(SessionName::OfDefaultTenant(id), 0, 1 << 20)
      ->token_ids;
}

TEST(ExportSession, GoesIntoAnotherServerAndOnAsIfFedThere) {
  RpcWorld here;
  here.MakeSession("s", Letters(40));
  const Exported exported = Export(here, "session_id: 's'", "s");
  ASSERT_EQ(Outcome(exported.status), "OK");
  RpcWorld there;
  const Imported imported = Import(there, "session_id: 't'", exported.file);
  ASSERT_EQ(Outcome(imported.status), "OK");
  EXPECT_EQ(imported.session.session_id(), "t");
  EXPECT_EQ(imported.session.position(), 40);
  EXPECT_EQ(imported.session.last_turn().outcome(), "OK");
  EXPECT_EQ(TokensOf(there, "t"), Letters(40));
  there.MakeSession("straight", Letters(40));
  const std::string turn =
      " text: 'x' sampling { seed: 3 } stop { max_tokens: 8 }";
  EXPECT_EQ(there.Generate("session_id: 't'" + turn).ids(),
            there.Generate("session_id: 'straight'" + turn).ids());
}

TEST(ExportSession, OfAnEmptySessionSaysThatItWasImported) {
  RpcWorld world;
  world.MakeSession("s");
  const Exported exported = Export(world, "session_id: 's'");
  ASSERT_EQ(Outcome(exported.status), "OK");
  const Imported imported = Import(world, "", exported.file);
  ASSERT_EQ(Outcome(imported.status), "OK");
  EXPECT_EQ(imported.session.position(), 0);
  EXPECT_EQ(imported.session.last_turn().outcome(), "IMPORTED");
  EXPECT_NE(imported.session.session_id(), "s");
}

TEST(ExportSession, ComesInChunksOfABoundedSize) {
  RpcWorld world;
  world.MakeSession("s");
  std::vector<int32_t> ids(1'000'000);
  std::iota(ids.begin(), ids.end(), 0);
  for (int32_t& id : ids) id %= 256;
  auto lease = world.store->Acquire("s");
  ASSERT_TRUE(lease->Reserve(static_cast<int64_t>(ids.size())).ok());
  lease->Append(ids);
  lease->Release();
  const Exported exported = Export(world, "session_id: 's'");
  ASSERT_EQ(Outcome(exported.status), "OK");
  EXPECT_THAT(exported.chunks, testing::Each(Le(256u << 10)));
  EXPECT_THAT(exported.chunks, SizeIs(testing::Ge(4u)));
  const Imported imported =
      Import(world, "session_id: 't'", exported.file, 100'000);
  ASSERT_EQ(Outcome(imported.status), "OK");
  EXPECT_EQ(TokensOf(world, "t"), ids);
}

TEST(ExportSession, CarriesTheStateBetweenServersOfOneKey) {
  RpcWorld here(WithKey(kKey));
  here.MakeSession("s", Letters(40));
  const Exported with = Export(here, "session_id: 's' include_state: true");
  const Exported without = Export(here, "session_id: 's'");
  ASSERT_EQ(Outcome(with.status), "OK");
  EXPECT_GT(with.file.size(), without.file.size());
  RpcWorld there(WithKey(kKey));
  ASSERT_EQ(Outcome(Import(there, "session_id: 't'", with.file).status), "OK");
  EXPECT_GT(there.store->counts().image_bytes, 0);
  EXPECT_EQ(
      Outcome(there.Generate("session_id: 't' stop { max_tokens: 1 }").status),
      "OK");
  EXPECT_THAT(there.runner.calls(), Contains(StartsWith("import ")));
}

TEST(ExportSession, OfAStrangersStateTakesTheTokensOnly) {
  RpcWorld here(WithKey(kKey));
  here.MakeSession("s", Letters(40));
  const Exported with = Export(here, "session_id: 's' include_state: true");
  for (const std::string& key : {std::string(), std::string(32, 'l')}) {
    RpcWorld there(WithKey(key));
    ASSERT_EQ(Outcome(Import(there, "session_id: 't'", with.file).status),
              "OK");
    EXPECT_EQ(there.store->counts().image_bytes, 0);
    EXPECT_EQ(TokensOf(there, "t"), Letters(40));
  }
}

TEST(ExportSession, HasNoStateWithoutAKey) {
  RpcWorld world;
  world.MakeSession("s", Letters(40));
  const Exported with = Export(world, "session_id: 's' include_state: true");
  ASSERT_EQ(Outcome(with.status), "OK");
  EXPECT_EQ(with.file, Export(world, "session_id: 's'").file);
  EXPECT_THAT(world.runner.calls(), Not(Contains(StartsWith("export "))));
}

TEST(ExportSession, SaysWhatIsWrongWithARequest) {
  RpcWorld world;
  world.MakeSession("s", Letters(2));
  EXPECT_EQ(Outcome(Export(world, "").status),
            "INVALID_ARGUMENT FIELD_INVALID session_id");
  EXPECT_EQ(Outcome(Export(world, "session_id: 'none'").status),
            "NOT_FOUND SESSION_UNKNOWN");
  EXPECT_EQ(Outcome(Export(world, "session_id: 's'", "other").status),
            "INVALID_ARGUMENT FIELD_INVALID x-txl-session");
  const auto lease = world.store->Acquire("s");
  EXPECT_EQ(Outcome(Export(world, "session_id: 's'").status),
            "ABORTED SESSION_BUSY");
}

// Nobody reads the answer: what the server holds for it stays what one export
// may take, and it ends.
TEST(ExportSession, ThatNobodyReadsIsCutOff) {
  ByteBudget streams(int64_t{8} << 20);
  RpcWorldOptions options;
  options.streams = &streams;
  options.calls.answer_timeout = absl::Milliseconds(200);
  RpcWorld world(options);
  world.MakeSession("s");
  auto lease = world.store->Acquire("s");
  const std::vector<int32_t> ids(4'000'000, 'a');
  ASSERT_TRUE(lease->Reserve(static_cast<int64_t>(ids.size())).ok());
  lease->Append(ids);
  lease->Release();
  grpc::ClientContext client;
  const auto reader = world.sessions->ExportSession(
      &client, Proto<v1::ExportSessionRequest>("session_id: 's'"));
  EXPECT_TRUE(Eventually([&] { return streams.used() > 0; }));
  EXPECT_LE(streams.used(), int64_t{3} << 20);
  EXPECT_TRUE(Eventually([&] { return streams.used() == 0; }));
  v1::ExportSessionResponse response;
  while (reader->Read(&response)) {
  }
  EXPECT_FALSE(reader->Finish().ok());
}

TEST(ImportSession, TakesAChunkInTheFirstMessageAndATtl) {
  RpcWorld world;
  world.MakeSession("s", Letters(3));
  const std::string file = Export(world, "session_id: 's'").file;
  v1::ImportSessionRequest first;
  first.set_session_id("t");
  first.mutable_ttl()->set_seconds(77);
  first.set_chunk(file);
  grpc::ClientContext client;
  v1::ImportSessionResponse response;
  const auto writer = world.sessions->ImportSession(&client, &response);
  ASSERT_TRUE(writer->Write(first));
  writer->WritesDone();
  ASSERT_EQ(Outcome(writer->Finish()), "OK");
  EXPECT_EQ(response.session().ttl().seconds(), 77);
  EXPECT_THAT(TokensOf(world, "t"), ElementsAre('a', 'b', 'c'));
}

TEST(ImportSession, OfAnotherModelIsRefused) {
  RpcWorld here;
  here.MakeSession("s", Letters(3));
  const std::string file = Export(here, "session_id: 's'").file;
  RpcWorldOptions options;
  options.fingerprint = "beef";
  RpcWorld there(options);
  EXPECT_EQ(Outcome(Import(there, "session_id: 't'", file).status),
            "FAILED_PRECONDITION MODEL_MISMATCH");
  EXPECT_EQ(there.store->counts().idle, 0);
}

TEST(ImportSession, SaysWhatIsWrongWithARequest) {
  RpcWorld world;
  world.MakeSession("s", Letters(3));
  const std::string file = Export(world, "session_id: 's'").file;
  EXPECT_EQ(Outcome(Import(world, "session_id: 's'", file).status),
            "ALREADY_EXISTS SESSION_EXISTS");
  EXPECT_EQ(Outcome(Import(world, "session_id: '/'", file).status),
            "INVALID_ARGUMENT FIELD_INVALID session_id");
  EXPECT_EQ(Outcome(Import(world, "ttl { }", file).status),
            "INVALID_ARGUMENT FIELD_INVALID ttl");
  EXPECT_EQ(Outcome(Import(world, "", "").status),
            "INVALID_ARGUMENT FIELD_INVALID chunk");
  EXPECT_EQ(Outcome(Import(world, "", file + "x").status),
            "INVALID_ARGUMENT FIELD_INVALID chunk");
  EXPECT_EQ(Outcome(Import(world, "", file.substr(0, file.size() - 1)).status),
            "INVALID_ARGUMENT FIELD_INVALID chunk");
  EXPECT_EQ(world.store->counts().idle, 1);
}

TEST(ImportSession, TakesIdAndTtlInTheFirstMessageOnly) {
  RpcWorld world;
  for (const char* later : {"session_id: 't'", "ttl { seconds: 9 }"}) {
    grpc::ClientContext client;
    v1::ImportSessionResponse response;
    const auto writer = world.sessions->ImportSession(&client, &response);
    writer->Write(Proto<v1::ImportSessionRequest>(""));
    writer->Write(Proto<v1::ImportSessionRequest>(later));
    writer->WritesDone();
    EXPECT_THAT(Outcome(writer->Finish()),
                StartsWith("INVALID_ARGUMENT FIELD_INVALID "));
  }
}

TEST(ImportSession, OverALimitIsRefused) {
  RpcWorldOptions options;
  options.limits.import_bytes = 300;
  RpcWorld world(options);
  world.MakeSession("s", Letters(600));
  const std::string file = Export(world, "session_id: 's'").file;
  ASSERT_GT(file.size(), 600u);
  EXPECT_EQ(Outcome(Import(world, "", file).status),
            "INVALID_ARGUMENT OVER_LIMIT chunk");
}

TEST(ImportSession, WithoutRoomForTheFileIsRefused) {
  ByteBudget requests(int64_t{1} << 20);
  RpcWorldOptions options;
  options.requests = &requests;
  RpcWorld world(options);
  world.MakeSession("s", Letters(20));
  const std::string file = Export(world, "session_id: 's'").file;
  {
    const auto other = requests.TryHold(requests.limit() - (200 << 10));
    ASSERT_TRUE(other.has_value());
    EXPECT_EQ(Outcome(Import(world, "", file).status),
              "RESOURCE_EXHAUSTED OVERLOADED");
  }
  EXPECT_TRUE(Eventually([&] { return requests.used() == 0; }));
}

TEST(ImportSession, ThatDoesNotGoOnIsEnded) {
  RpcWorldOptions options;
  options.calls.request_timeout = absl::Milliseconds(200);
  RpcWorld world(options);
  grpc::ClientContext client;
  v1::ImportSessionResponse response;
  const auto writer = world.sessions->ImportSession(&client, &response);
  ASSERT_TRUE(writer->Write(Proto<v1::ImportSessionRequest>("")));
  EXPECT_EQ(Outcome(writer->Finish()), "DEADLINE_EXCEEDED DEADLINE_EXCEEDED");
}

}  // namespace
}  // namespace txl
