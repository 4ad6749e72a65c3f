#include "tests/server/store/redis/history/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace txl::history {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(History, IsFineWhereAppendsFollowWhatTheirWritersSaw) {
  History history;
  const int a = history.Invoke("", 2);
  const std::string first = history.IdsOf(a);
  const int b = history.Invoke(first, 1);
  const std::string second = first + history.IdsOf(b);
  history.Acknowledge(a, 1);
  EXPECT_EQ(history.Read(first), "");
  EXPECT_EQ(history.Read(second), "");
  history.Acknowledge(b, 2);
  EXPECT_EQ(history.Read(second), "");
  EXPECT_THAT(History::AppendsIn(second), ElementsAre(a, b));
}

TEST(History, SeesWhatIsGone) {
  History history;
  const int a = history.Invoke("", 2);
  EXPECT_EQ(history.Read(""), "");
  history.Acknowledge(a, 1);
  EXPECT_THAT(history.Read(""), HasSubstr("is gone"));
}

TEST(History, SeesWhatIsThereTwice) {
  History history;
  const std::string a = history.IdsOf(history.Invoke("", 2));
  EXPECT_THAT(history.Read(a + a), HasSubstr("twice"));
}

TEST(History, SeesTextsThatTheWriterNeverSaw) {
  History history;
  const std::string a = history.IdsOf(history.Invoke("", 2));
  const std::string b = history.IdsOf(history.Invoke("", 2));
  const std::string c = history.IdsOf(history.Invoke(a, 2));
  EXPECT_EQ(history.Read(a + c), "");
  EXPECT_THAT(history.Read(b + c), HasSubstr("never saw"));
  EXPECT_THAT(history.Read(c), HasSubstr("never saw"));
  EXPECT_THAT(history.Read(a + b), HasSubstr("never saw"));
}

TEST(History, SeesPartsOfAppendsAndNoAppends) {
  History history;
  const std::string a = history.IdsOf(history.Invoke("", 3));
  EXPECT_THAT(history.Read(a.substr(0, 4)), HasSubstr("not a whole append"));
  EXPECT_THAT(history.Read(a.substr(2)), HasSubstr("not a whole append"));
  EXPECT_THAT(history.Read(a + std::string(2, '\x7f')),
              HasSubstr("not a whole append"));
  EXPECT_THAT(history.Read(a + "x"), HasSubstr("half an id"));
}

TEST(History, ForgivesWhatAFailoverLost) {
  History history;
  const int a = history.Invoke("", 1);
  history.Acknowledge(a, 1);
  const int b = history.Invoke(history.IdsOf(a), 1);
  history.Acknowledge(b, 2);
  history.FailOver(1, 2);
  EXPECT_EQ(history.Read(history.IdsOf(a)), "");
  EXPECT_THAT(history.Read(""), HasSubstr("is gone"));
  // An answer of before the failover that comes after it says nothing.
  history.Acknowledge(b, 2);
  EXPECT_EQ(history.Read(history.IdsOf(a)), "");
  // Told again, it is there to stay.
  history.Acknowledge(b, 3);
  EXPECT_THAT(history.Read(history.IdsOf(a)), HasSubstr("is gone"));
}

TEST(History, ForgivesWhatWasTakenBack) {
  History history;
  const int a = history.Invoke("", 1);
  const int b = history.Invoke(history.IdsOf(a), 2);
  const std::string both = history.IdsOf(a) + history.IdsOf(b);
  history.Acknowledge(a, 1);
  history.Acknowledge(b, 2);
  history.Rewind(both, 1);
  EXPECT_EQ(history.Read(history.IdsOf(a)), "");
  EXPECT_THAT(history.Read(""), HasSubstr("is gone"));
  const int c = history.Invoke(history.IdsOf(a), 1);
  EXPECT_EQ(history.Read(history.IdsOf(a) + history.IdsOf(c)), "");
  EXPECT_THAT(history.Read(both + history.IdsOf(c)), HasSubstr("never saw"));
}

}  // namespace
}  // namespace txl::history
