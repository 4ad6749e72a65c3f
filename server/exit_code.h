#pragma once

// Exit codes of txl-server, for supervisors (docs/operating.md).

namespace txl {

enum ExitCode : int {
  kExitDrained = 0,      // SIGTERM, and every turn ended; or it only printed
  kExitCannotStart = 1,  // model, address, device, memory
  kExitUsage = 2,        // flags, variables, the configuration file
  kExitForced = 3,       // a second SIGTERM, or the drain's last limit
  kExitNotServing = 4,   // it could not serve any more: start it again
};

}  // namespace txl
