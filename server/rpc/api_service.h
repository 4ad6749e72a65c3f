#pragma once

// Every method of the API, and reflection, behind one generic service: a path
// that is not in its table is UNIMPLEMENTED. With a context for administration
// it has that service's methods and nothing else. Who calls is asked before
// anything of a message is read.

#include <grpcpp/generic/async_generic_service.h>

#include "server/api/call_desk.h"

namespace txl {

// Thread-safe. The desk outlives the service.
class ApiService final : public grpc::CallbackGenericService {
 public:
  explicit ApiService(CallDesk* desk) : desk_(desk) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* call) override;

 private:
  CallDesk* const desk_;
};

}  // namespace txl
