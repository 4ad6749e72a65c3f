#include "tests/server/store/redis/history/lua_library.h"

#include <lua5.1/lua.hpp>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace txl::history {
namespace {

constexpr char kFunctions[] = "txl functions";

std::string PopText(lua_State* lua) {
  size_t size = 0;
  const char* text = lua_tolstring(lua, -1, &size);
  std::string popped(text == nullptr ? "" : text, size);
  lua_pop(lua, 1);
  return popped;
}

void PushText(lua_State* lua, const std::string& text) {
  lua_pushlstring(lua, text.data(), text.size());
}

void PushTexts(lua_State* lua, const Words& texts) {
  lua_createtable(lua, static_cast<int>(texts.size()), 0);
  for (size_t i = 0; i < texts.size(); ++i) {
    PushText(lua, texts[i]);
    lua_rawseti(lua, -2, static_cast<int>(i + 1));
  }
}

// As Redis converts it: what is absent is false.
struct Pusher {
  lua_State* lua;
  void operator()(std::monostate) const { lua_pushboolean(lua, 0); }
  void operator()(int64_t number) const {
    lua_pushnumber(lua, static_cast<lua_Number>(number));
  }
  void operator()(const std::string& text) const { PushText(lua, text); }
  void operator()(const std::vector<std::optional<std::string>>& texts) const {
    lua_createtable(lua, static_cast<int>(texts.size()), 0);
    for (size_t i = 0; i < texts.size(); ++i) {
      if (texts[i]) {
        PushText(lua, *texts[i]);
      } else {
        lua_pushboolean(lua, 0);
      }
      lua_rawseti(lua, -2, static_cast<int>(i + 1));
    }
  }
};

}  // namespace

LuaLibrary::LuaLibrary() : lua_(luaL_newstate()) {
  luaL_openlibs(lua_);
  lua_newtable(lua_);
  lua_setfield(lua_, LUA_REGISTRYINDEX, kFunctions);
  lua_newtable(lua_);
  for (const auto& [name, function] :
       {std::pair("call", &CallRedis),
        std::pair("register_function", &Register)}) {
    lua_pushlightuserdata(lua_, this);
    lua_pushcclosure(lua_, function, 1);
    lua_setfield(lua_, -2, name);
  }
  lua_setglobal(lua_, "redis");
}

LuaLibrary::~LuaLibrary() { lua_close(lua_); }

LuaLibrary& LuaLibrary::Self(lua_State* lua) {
  return *static_cast<LuaLibrary*>(lua_touserdata(lua, lua_upvalueindex(1)));
}

int LuaLibrary::Register(lua_State* lua) {
  lua_getfield(lua, LUA_REGISTRYINDEX, kFunctions);
  lua_insert(lua, 1);
  lua_rawset(lua, 1);
  return 0;
}

int LuaLibrary::CallRedis(lua_State* lua) {
  LuaLibrary& self = Self(lua);
  {
    Words words;
    for (int i = 1; i <= lua_gettop(lua); ++i) {
      size_t size = 0;
      const char* word = lua_tolstring(lua, i, &size);
      words.emplace_back(word == nullptr ? "" : word, size);
    }
    const absl::StatusOr<Reply> reply = self.store_->Call(words);
    if (reply.ok()) {
      std::visit(Pusher{lua}, *reply);
      return 1;
    }
    self.error_ = std::string(reply.status().message());
  }
  return luaL_error(lua, "%s", self.error_.c_str());
}

absl::StatusOr<std::unique_ptr<LuaLibrary>> LuaLibrary::Load(std::string text) {
  auto library = absl::WrapUnique(new LuaLibrary());
  // The first line is Redis's.
  if (text.starts_with("#!")) text.erase(0, text.find('\n'));
  lua_State* lua = library->lua_;
  if (luaL_loadbuffer(lua, text.data(), text.size(), "library") != 0 ||
      lua_pcall(lua, 0, 0, 0) != 0) {
    return absl::InvalidArgumentError(PopText(lua));
  }
  return library;
}

absl::StatusOr<Words> LuaLibrary::Call(RedisMap* store,
                                       const std::string& function,
                                       const std::string& key,
                                       const Words& args) {
  store_ = store;
  lua_settop(lua_, 0);
  lua_getfield(lua_, LUA_REGISTRYINDEX, kFunctions);
  lua_getfield(lua_, -1, function.c_str());
  if (!lua_isfunction(lua_, -1)) return absl::NotFoundError(function);
  PushTexts(lua_, {key});
  PushTexts(lua_, args);
  if (lua_pcall(lua_, 2, 1, 0) != 0) {
    return absl::InvalidArgumentError(PopText(lua_));
  }
  if (!lua_istable(lua_, -1)) return absl::InvalidArgumentError("no array");
  Words answer;
  const auto size = static_cast<int>(lua_objlen(lua_, -1));
  for (int i = 1; i <= size; ++i) {
    lua_rawgeti(lua_, -1, i);
    answer.push_back(PopText(lua_));
  }
  return answer;
}

absl::StatusOr<std::string> WithoutFences(const std::string& text,
                                          const Words& fences) {
  constexpr char kFence[] = "local function fence(";
  constexpr char kEnd[] = "\nend\n";
  const size_t begin = text.find(kFence);
  const size_t end = text.find(kEnd, begin);
  if (begin == text.npos || end == text.npos) {
    return absl::NotFoundError(kFence);
  }
  const std::string whole = text.substr(begin, end + sizeof(kEnd) - 1 - begin);
  Words lines = absl::StrSplit(whole, '\n');
  for (const std::string& fence : fences) {
    const std::string mark = absl::StrCat("-- fence: ", fence);
    if (std::erase_if(lines, [&](const std::string& line) {
          return line.ends_with(mark);
        }) == 0) {
      return absl::NotFoundError(fence);
    }
  }
  std::string rest = text.substr(begin + whole.size());
  for (const char* reader :
       {"local function load(", "local function acquire("}) {
    const size_t call = rest.find(" fence(", rest.find(reader));
    if (call == rest.npos) return absl::NotFoundError(reader);
    rest.insert(call + 1, "whole_");
  }
  return absl::StrCat(text.substr(0, begin),
                      absl::StrReplaceAll(whole, {{"fence(", "whole_fence("}}),
                      absl::StrJoin(lines, "\n"), rest);
}

}  // namespace txl::history
