#pragma once

// docs/settings.md from the settings of txl-server.

#include <string>

namespace txl {

// In Markdown: a table for each group of flags, and one for [tuning].
std::string MakeSettingsReference();

}  // namespace txl
