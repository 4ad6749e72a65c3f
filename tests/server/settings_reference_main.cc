// txl-settings-reference: docs/settings.md on standard output.

#include <cstdio>

#include "tests/server/settings_reference.h"

int main() {
  return std::fputs(txl::MakeSettingsReference().c_str(), stdout) < 0;
}
