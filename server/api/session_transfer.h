#pragma once

// SessionService.ExportSession and ImportSession: sessions as files.

#include <memory>

#include "server/api/api_call.h"
#include "server/api/service_context.h"

namespace txl {

// Bytes of an ExportSessionResponse's chunk at most.
inline constexpr int64_t kExportChunkBytes = 256 << 10;

// ApiMethod::handle. An import is a stream of requests.
void ExportSession(const ServiceContext& service,
                   const std::shared_ptr<ApiCall>& call);
void ImportSession(const ServiceContext& service,
                   const std::shared_ptr<ApiCall>& call);

}  // namespace txl
