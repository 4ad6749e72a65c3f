#pragma once

namespace txl {

// Lua that changes sessions in Redis, for FUNCTION LOAD: txl_1.lua. Its name
// has a version: servers of two versions may work on one Redis.
const char* RedisFunctionLibrary();

}  // namespace txl
