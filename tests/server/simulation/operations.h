#pragma once

// What clients, owners of sessions and time do, one thing at a time.

#include "tests/server/simulation/world.h"

namespace txl::simulation {

// One operation, drawn by the seed's weights. `interleaved`: as another thread,
// while the scheduler is in the middle of something; it does not run the
// scheduler then, and no long time passes.
void RunOperation(World& world, bool interleaved);

// A turn that must go well.
void SendHealthy(World& world, const std::string& session);
void DeleteSession(World& world, const std::string& session);
void PassTime(World& world, absl::Duration by);

}  // namespace txl::simulation
