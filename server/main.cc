// txl-server: serves a model directory over gRPC and HTTP. Exit status:
// server/signals.h.

#include <string>
#include <vector>

#include "server/commands.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (txl::IsStoreCommand(arguments)) return txl::RunStoreCommand(arguments);
  if (txl::IsKeysCommand(arguments)) return txl::RunKeysCommand(arguments);
  return txl::RunServeCommand(arguments);
}
