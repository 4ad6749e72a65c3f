#include "client/fleet/event_queue.h"

#include <gtest/gtest.h>

#include <string>

namespace txl::fleet {
namespace {

TEST(EventQueue, KeepsTheOrderOfTimesAndOfOneTime) {
  EventQueue<char> events;
  events.Add(2, 'd');
  events.Add(1, 'a');
  events.Add(1, 'b');
  events.Add(1.5, 'c');
  EXPECT_EQ(events.next_time(), 1);
  std::string order;
  while (!events.empty()) order += events.Pop().what;
  EXPECT_EQ(order, "abcd");
}

TEST(EventQueue, TakesMoreWhileItIsEmptied) {
  EventQueue<int> events;
  events.Add(0, 0);
  double last = 0;
  int popped = 0;
  while (!events.empty() && popped < 1000) {
    const auto event = events.Pop();
    EXPECT_GE(event.time, last);
    last = event.time;
    ++popped;
    events.Add(event.time + 3, event.what + 1);
    if (popped % 2 == 0) events.Add(event.time, event.what + 1);
  }
  EXPECT_EQ(popped, 1000);
}

}  // namespace
}  // namespace txl::fleet
