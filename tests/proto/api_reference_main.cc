// txl-api-reference PROTO_FOLDER: docs/api.md on standard output.

#include <cstdio>

#include "tests/proto/api_reference.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s proto > docs/api.md\n", argv[0]);
    return 2;
  }
  const absl::StatusOr<std::string> text =
      txl::MakeApiReference(argv[1], txl::ApiFiles());
  if (!text.ok()) {
    std::fprintf(stderr, "%s\n", std::string(text.status().message()).c_str());
    return 1;
  }
  std::fputs(text->c_str(), stdout);
  return 0;
}
