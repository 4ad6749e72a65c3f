#pragma once

// A function library of Redis, run by the Lua that Redis has (5.1).

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/server/store/redis/history/redis_map.h"

struct lua_State;

namespace txl::history {

// Not thread-safe.
class LuaLibrary {
 public:
  // Runs the text, which registers its functions. Errors: InvalidArgument with
  // Lua's message.
  static absl::StatusOr<std::unique_ptr<LuaLibrary>> Load(std::string text);
  ~LuaLibrary();
  LuaLibrary(const LuaLibrary&) = delete;
  LuaLibrary& operator=(const LuaLibrary&) = delete;

  // FCALL of a function with one key on a store. Errors: NotFound;
  // InvalidArgument with Lua's message, as where the answer is not an array of
  // texts.
  absl::StatusOr<Words> Call(RedisMap* store, const std::string& function,
                             const std::string& key, const Words& args);

 private:
  LuaLibrary();
  static int CallRedis(lua_State* lua);
  static int Register(lua_State* lua);
  static LuaLibrary& Self(lua_State* lua);

  lua_State* lua_;
  RedisMap* store_ = nullptr;  // of the call that runs
  // Here, as Lua's errors leave functions without destroying anything.
  std::string error_;
};

// The library's text whose changes go without these fences; what tells a caller
// whether its copy is current (acquire, load) keeps them. Errors: NotFound for
// a fence that it does not have.
absl::StatusOr<std::string> WithoutFences(const std::string& text,
                                          const Words& fences);

}  // namespace txl::history
