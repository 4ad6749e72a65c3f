#pragma once

// gRPC's server reflection, as a method among the others: gRPC's own service
// would answer anybody.

#include "server/api/api_call.h"

namespace txl {

// grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo.
const ApiMethod& ReflectionMethod();

}  // namespace txl
