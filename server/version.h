#pragma once

namespace txl {

// Shown by GetModel and --version.
inline constexpr char kServerVersion[] = "0.1.0";

}  // namespace txl
