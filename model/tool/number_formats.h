#pragma once

// The flags that choose the native step's number formats and form.

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "model/cpu/native_weights.h"

namespace txl {

struct FormatFlags {
  std::string form = "auto";
  std::string weights = "f32";
  std::string memory = "f32";
  std::string derived = "f32";
  std::string products = "float";
};

// --form, --weights, --memory, --derived, --products; other names are errors of
// usage.
void AddFormatFlags(CLI::App& app, FormatFlags& flags);

// REQUIRES: names that AddFormatFlags lets pass.
NativeFormats FormatsOf(const FormatFlags& flags);

// InvalidArgument names the first flag that has not its default; `needed` says
// what other values need.
absl::Status RequireDefaults(const FormatFlags& flags,
                             absl::string_view needed);

}  // namespace txl
