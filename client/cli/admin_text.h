#pragma once

// Answers of AdminService for people. Each text ends with its line.

#include <string>

#include "txl/v1/admin_service.pb.h"

namespace txl::cli {

// Above FormatTenantSession's lines.
std::string TenantSessionHeader();
std::string FormatTenantSession(const v1::TenantSession& session);

// A table: of each quota what is taken and the limit, "3/8"; "-": none.
std::string FormatQuotas(const v1::GetQuotasResponse& quotas);
// A line for each file.
std::string FormatReload(const v1::ReloadResponse& reload);
// Whose turns are refused, and how many of `tenant` go on.
std::string FormatDrain(const std::string& tenant,
                        const v1::DrainTenantResponse& drain);

}  // namespace txl::cli
