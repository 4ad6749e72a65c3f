#pragma once

namespace txl {

// Shown by --version of every program and by GetModel.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace txl
