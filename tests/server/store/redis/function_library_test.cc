// What the functions in Redis promise, by a real redis-server.

#include "server/store/redis/function_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/numbers.h"
#include "server/store/redis/redis_connection.h"
#include "tests/server/store/redis/redis_server.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using Words = std::vector<std::string>;

constexpr char kKey[] = "txl:{default/a}";

class FunctionLibraryTest : public testing::WithRedis<> {
 protected:
  void SetUp() override {
    auto opened =
        RedisConnection::Open({"127.0.0.1", redis_->port()}, absl::Seconds(10));
    ASSERT_TRUE(opened.ok()) << opened.status();
    connection_ = *std::move(opened);
    Call({"FLUSHALL"});
    Call({"FUNCTION", "LOAD", "REPLACE", RedisFunctionLibrary()});
  }

  Words Call(RedisCommand command) {
    RedisAnswer answer = connection_->CallOne(command);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.value_or(Words());
  }
  Words Function(const std::string& name, const std::string& key,
                 const Words& args) {
    RedisCommand command = {"FCALL", "txl_1_" + name, "1", key};
    command.insert(command.end(), args.begin(), args.end());
    return Call(std::move(command));
  }
  Words Do(const std::string& name, const Words& args) {
    return Function(name, kKey, args);
  }
  // "abc" is the session's, a byte an id.
  void CreateAbc() {
    ASSERT_THAT(Do("create", {"born", "m", "1", "h0", "c0", "3", "abc", "100"}),
                ElementsAre("OK"));
  }
  Words Acquire(const std::string& request, const std::string& nonce,
                const Words& known = {"", "", "", ""},
                const std::string& lease = "100000") {
    Words args = known;
    args.insert(args.end(), {"m", request, nonce, "server-" + nonce, lease});
    return Do("acquire", args);
  }
  std::string Ids() { return Do("load", {"", "", "", ""})[14]; }

  std::unique_ptr<RedisConnection> connection_;
};

const Words kOwned = {"1", "n1", "3", "c0"};

Words With(Words known, const Words& rest) {
  known.insert(known.end(), rest.begin(), rest.end());
  return known;
}

TEST_F(FunctionLibraryTest, ACreatedSessionIsLoadedAsItIs) {
  CreateAbc();
  EXPECT_THAT(Do("load", {"", "", "", ""}),
              ElementsAre("OK", "0", "born", "3", "c0", "3", "born", "m", "1",
                          "h0", "", "", "", "", "abc", "0"));
  EXPECT_THAT(Do("load", {"0", "born", "3", "c0"}),
              ElementsAre("SAME", "0", "0"));
}

TEST_F(FunctionLibraryTest, ANameIsCreatedOnceAndTheSameCreationTwice) {
  CreateAbc();
  EXPECT_THAT(Do("create", {"born", "m", "1", "h0", "c0", "3", "abc", "100"}),
              ElementsAre("AGAIN"));
  EXPECT_THAT(Do("create", {"other", "m", "1", "h", "c", "0", "", "100"}),
              ElementsAre("EXISTS"));
  EXPECT_EQ(Ids(), "abc");
}

TEST_F(FunctionLibraryTest, ATurnIsAppendedAndEnds) {
  CreateAbc();
  EXPECT_THAT(Acquire("r", "n1", {"0", "born", "3", "c0"}),
              ElementsAre("SAME", "1", "n1", "0"));
  EXPECT_THAT(Do("begin", With(kOwned, {"intent", "u1", "100000", "200"})),
              ElementsAre("OK"));
  EXPECT_THAT(Do("append", With(kOwned, {"2", "c1", "de", "E1", "100000"})),
              ElementsAre("OK"));
  const Words running = Do("load", {"", "", "", ""});
  ASSERT_THAT(running, SizeIs(16));
  EXPECT_EQ(running[3], "5");  // position
  EXPECT_EQ(running[5], "3");  // base
  EXPECT_EQ(running[10], "intent");
  EXPECT_EQ(running[11], "u1");
  EXPECT_EQ(running[13], "E1");
  EXPECT_NE(running[15], "0");
  EXPECT_THAT(
      Do("end", {"1", "n1", "5", "c1", "1", "c2", "f", "h2", "record", "300"}),
      ElementsAre("OK"));
  EXPECT_THAT(Do("load", {"", "", "", ""}),
              ElementsAre("OK", "1", "n1", "6", "c2", "6", "born", "m", "1",
                          "h2", "", "u1", "record", "", "abcdef", "0"));
}

TEST_F(FunctionLibraryTest, ARepeatedChangeIsMadeOnce) {
  CreateAbc();
  Acquire("r", "n1");
  const Words append = With(kOwned, {"2", "c1", "de", "E1", "100000"});
  EXPECT_THAT(Do("append", append), ElementsAre("OK"));
  EXPECT_THAT(Do("append", append), ElementsAre("AGAIN"));
  const Words end = {"1", "n1", "5", "c1", "1", "c2", "f", "h", "", "300"};
  EXPECT_THAT(Do("end", end), ElementsAre("OK"));
  EXPECT_THAT(Do("end", end), ElementsAre("AGAIN"));
  EXPECT_THAT(Do("append", append), ElementsAre("POSITION", "6"));
  EXPECT_EQ(Ids(), "abcdef");
}

TEST_F(FunctionLibraryTest, AnOwnedSessionIsBusyButForTheSameRequest) {
  CreateAbc();
  Acquire("r", "n1");
  const Words busy = Acquire("other", "n2");
  ASSERT_THAT(busy, SizeIs(2));
  EXPECT_EQ(busy[0], "BUSY");
  int64_t left = 0;
  EXPECT_TRUE(absl::SimpleAtoi(busy[1], &left));
  EXPECT_GT(left, 0);
  EXPECT_LE(left, 100000);
  EXPECT_THAT(Acquire("", "n2")[0], "BUSY");  // without a name: never the same
  const Words taken = Acquire("r", "n2");
  EXPECT_EQ(taken[0], "OK");
  EXPECT_EQ(taken[1], "2");
  EXPECT_THAT(Do("append", With(kOwned, {"1", "c9", "x", "", "100000"})),
              ElementsAre("FENCED", "3"));
  EXPECT_EQ(Ids(), "abc");
}

TEST_F(FunctionLibraryTest, ARepeatedAcquisitionIsTheSameOwner) {
  CreateAbc();
  EXPECT_EQ(Acquire("r", "n1")[1], "1");
  const Words again = Acquire("r", "n1");
  EXPECT_EQ(again[0], "AGAIN");
  EXPECT_EQ(again[1], "1");
}

TEST_F(FunctionLibraryTest, WhatIsReleasedOrHasEndedIsAnybodys) {
  CreateAbc();
  Acquire("", "n1");
  EXPECT_THAT(Do("release", kOwned), ElementsAre("OK"));
  EXPECT_EQ(Acquire("", "n2")[0], "OK");
  EXPECT_THAT(Do("release", kOwned), ElementsAre("FENCED", "3"));
  EXPECT_EQ(Acquire("", "n3")[0], "BUSY");
}

TEST_F(FunctionLibraryTest, AnOwnerWhoseTimeHasPassedGoesOnUnlessAnotherCame) {
  CreateAbc();
  Acquire("", "n1", {"", "", "", ""}, "0");  // has passed at once
  EXPECT_THAT(Do("append", With(kOwned, {"1", "c1", "d", "", "0"})),
              ElementsAre("OK"));
  EXPECT_EQ(Acquire("", "n2")[0], "OK");
  EXPECT_THAT(Do("append", {"1", "n1", "4", "c1", "1", "c2", "e", "", "9"}),
              ElementsAre("FENCED", "4"));
  EXPECT_THAT(Do("touch", {"1", "n1", "", "", "9"}),
              ElementsAre("FENCED", "4"));
  EXPECT_EQ(Ids(), "abcd");
}

TEST_F(FunctionLibraryTest, EachFenceHoldsByItself) {
  CreateAbc();
  Acquire("", "n1");
  const Words wrong[] = {{"0", "n1", "3", "c0"},
                         {"1", "n0", "3", "c0"},
                         {"1", "n1", "2", "c0"},
                         {"1", "n1", "3", "c9"}};
  for (const Words& known : wrong) {
    for (const auto& [name, rest] : std::vector<std::pair<std::string, Words>>{
             {"begin", {"intent", "h", "9", "9"}},
             {"append", {"1", "c1", "x", "", "9"}},
             {"end", {"1", "c1", "x", "h", "", "9"}},
             {"rewind", {"0", "c1", "h", "server-n1", "n", "9"}}}) {
      const Words answer = Do(name, With(known, rest));
      ASSERT_THAT(answer, SizeIs(2)) << name;
      EXPECT_TRUE(answer[0] == "FENCED" || answer[0] == "POSITION") << name;
      EXPECT_EQ(answer[1], "3") << name;
    }
  }
  EXPECT_EQ(Ids(), "abc");
}

TEST_F(FunctionLibraryTest, ARewoundSessionHoldsItsFirstIdsAndEndsItsOwner) {
  CreateAbc();
  Acquire("", "n1");
  EXPECT_EQ(Do("rewind", With(kOwned, {"2", "c1", "h", "x", "n2", "9"}))[0],
            "BUSY");
  Do("release", kOwned);
  const Words rewind = With(kOwned, {"2", "c1", "h", "x", "n2", "9"});
  EXPECT_THAT(Do("rewind", rewind), ElementsAre("OK"));
  EXPECT_THAT(Do("rewind", rewind), ElementsAre("AGAIN"));
  EXPECT_EQ(Ids(), "ab");
  EXPECT_THAT(Do("append", {"2", "n2", "2", "c1", "1", "c2", "z", "", "9"}),
              ElementsAre("OK"));
  EXPECT_EQ(Ids(), "abz");
}

TEST_F(FunctionLibraryTest, WhatIsRemovedIsGoneAndNoLaterSessionOfItsName) {
  CreateAbc();
  Acquire("", "n1");
  EXPECT_THAT(Do("remove", {"born", "0"}), ElementsAre("OK"));
  EXPECT_THAT(Do("append", With(kOwned, {"1", "c1", "x", "", "9"})),
              ElementsAre("GONE", "0"));
  EXPECT_THAT(Acquire("", "n2"), ElementsAre("GONE", "0"));
  Do("create", {"born2", "m", "1", "h", "c", "1", "z", "100"});
  EXPECT_THAT(Do("remove", {"born", "0"}), ElementsAre("AGAIN"));
  EXPECT_EQ(Ids(), "z");
  EXPECT_THAT(Do("remove", {"", "0"}), ElementsAre("OK"));
  EXPECT_THAT(Call({"KEYS", "*"}), SizeIs(0));
}

TEST_F(FunctionLibraryTest, OnlyWhatHasExpiredAndIsNotOwnedExpires) {
  CreateAbc();  // expires at 100
  EXPECT_EQ(Do("remove", {"", "99"})[0], "FENCED");
  Acquire("", "n1");
  EXPECT_THAT(Function("expired", "txl:ids", {"100", "9"}), SizeIs(0));
  EXPECT_EQ(Do("remove", {"", "100"})[0], "FENCED");
  Do("release", kOwned);
  EXPECT_THAT(Function("expired", "txl:ids", {"99", "9"}), SizeIs(0));
  EXPECT_THAT(Function("expired", "txl:ids", {"100", "9"}),
              ElementsAre("default/a", "3"));
  EXPECT_THAT(Do("remove", {"", "100"}), ElementsAre("OK"));
}

TEST_F(FunctionLibraryTest, AListingGoesByName) {
  for (const char* name : {"x/b", "default/c", "default/b"}) {
    Function("create", std::string("txl:{") + name + "}",
             {name, "m", "1", "h", "c", "1", "z", "100"});
  }
  CreateAbc();
  EXPECT_THAT(
      Function("list", "txl:ids", {"(default/a", "(default0", "9"}),
      ElementsAre("default/b", "1", "", "h", "default/c", "1", "", "h"));
  EXPECT_THAT(Function("list", "txl:ids", {"-", "+", "1"}),
              ElementsAre("default/a", "3", "", "h0"));
}

TEST_F(FunctionLibraryTest, AnotherModelsSessionIsNotTaken) {
  CreateAbc();
  EXPECT_THAT(Do("acquire", {"", "", "", "", "other", "", "n1", "s", "9"}),
              ElementsAre("MODEL"));
  EXPECT_EQ(Do("load", {"", "", "", ""})[1], "0");
}

TEST_F(FunctionLibraryTest, WhatWasAnsweredSurvivesAKill) {
  CreateAbc();
  Acquire("", "n1");
  Do("append", With(kOwned, {"2", "c1", "de", "", "100000"}));
  redis_->Kill();
  redis_->Start();
  auto opened =
      RedisConnection::Open({"127.0.0.1", redis_->port()}, absl::Seconds(10));
  ASSERT_TRUE(opened.ok());
  connection_ = *std::move(opened);
  EXPECT_EQ(Ids(), "abcde");  // the functions, too
  EXPECT_THAT(Do("append", {"1", "n1", "5", "c1", "1", "c2", "f", "", "9"}),
              ElementsAre("OK"));
}

}  // namespace
}  // namespace txl
