#pragma once

// Random histories of one session that several servers write through a
// function library, with its own text run by Redis's Lua: answers that are
// lost, commands that come late or twice or never, servers that stand still or
// die, time that passes, and failovers to a replica that is behind.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/server/store/redis/history/lua_library.h"

namespace txl::history {

enum class Event {
  kAppended,  // ids were stored
  kRepeated,  // a change that had been made was asked for again
  kRewound,
  kTakenOver,  // a session was acquired that another one had held last
  kFenced,     // by epoch or nonce
  kPosition,   // refused for position or chain
  kBusy,       // refused for its owner
  kCached,     // a former owner's copy was current
  kLostAnswer,
  kLostCommand,
  kLateCommand,  // of a server that has begun anew or gone on meanwhile
  kPause,
  kRestart,
  kTime,
  kFailover,  // that lost changes
};
inline constexpr int kEvents = 15;

struct HistoryResult {
  std::string violation;  // what History found; empty: nothing
  std::vector<std::string> trace;
  std::array<int64_t, kEvents> happened{};  // by Event
};

// A function of library and seed. Every second seed has failovers. `tracing`
// fills the trace.
HistoryResult RunHistory(LuaLibrary& library, uint64_t seed, bool tracing);

struct HistoriesResult {
  int64_t run = 0;
  std::string violation;  // the first, with its seed; empty: none
  std::array<int64_t, kEvents> happened{};
};

// Seeds first .. first + count - 1, until one is violated.
HistoriesResult RunHistories(LuaLibrary& library, uint64_t first,
                             int64_t count);

}  // namespace txl::history
