#include "client/cli/admin_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cli/session_text.h"

namespace txl::cli {
namespace {

std::string FormatQuota(const v1::Quota& quota) {
  if (!quota.has_limit() && !quota.has_used()) return "-";
  return absl::StrCat(quota.has_used() ? absl::StrCat(quota.used()) : "-", "/",
                      quota.has_limit() ? absl::StrCat(quota.limit()) : "-");
}

std::string FormatLongest(const v1::TenantQuotas& quotas) {
  if (!quotas.has_longest_turn()) return "-";
  const google::protobuf::Duration& longest = quotas.longest_turn();
  return absl::FormatDuration(absl::Seconds(longest.seconds()) +
                              absl::Nanoseconds(longest.nanos()));
}

using Table = std::vector<std::vector<std::string>>;  // rows of cells

// Columns as wide as they have to be.
std::string FormatTable(const Table& table) {
  std::vector<size_t> widths(table.front().size());
  for (const auto& row : table) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const auto& row : table) {
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      absl::StrAppendFormat(&text, "%-*s  ", widths[i], row[i]);
    }
    absl::StrAppend(&text, row.back(), "\n");
  }
  return text;
}

}  // namespace

std::string TenantSessionHeader() {
  return absl::StrCat("SLOT ", kSessionHeader);
}

std::string FormatTenantSession(const v1::TenantSession& session) {
  return absl::StrCat(session.in_slot() ? "yes  " : "no   ",
                      FormatSession(session.session()));
}

std::string FormatQuotas(const v1::GetQuotasResponse& quotas) {
  Table table = {{"TENANT", "STATE", "WEIGHT", "TURNS", "SESSIONS", "BYTES",
                  "CALLS/S", "TOKENS_IN/MIN", "TOKENS_OUT/MIN",
                  "LONGEST_TURN"}};
  for (const v1::TenantQuotas& tenant : quotas.tenants()) {
    table.push_back(
        {tenant.tenant(), tenant.draining() ? "draining" : "serving",
         absl::StrCat(tenant.weight()), FormatQuota(tenant.turns()),
         FormatQuota(tenant.sessions()), FormatQuota(tenant.bytes()),
         FormatQuota(tenant.calls_per_second()),
         FormatQuota(tenant.tokens_in_per_minute()),
         FormatQuota(tenant.tokens_out_per_minute()), FormatLongest(tenant)});
  }
  return FormatTable(table);
}

std::string FormatReload(const v1::ReloadResponse& reload) {
  if (reload.files().empty()) return "the server has no such files\n";
  std::string text;
  for (const v1::ReloadedFile& file : reload.files()) {
    absl::StrAppend(&text, file.setting(), " ", file.path(), ": ",
                    file.error().empty() ? "taken" : file.error(), "\n");
  }
  return text;
}

std::string FormatDrain(const std::string& tenant,
                        const v1::DrainTenantResponse& drain) {
  std::string text =
      absl::StrCat("draining: ",
                   drain.draining_tenants().empty()
                       ? "nobody"
                       : absl::StrJoin(drain.draining_tenants(), ", "),
                   "\n");
  if (drain.has_turns()) {
    absl::StrAppend(&text, "turns of ", tenant, ": ", drain.turns(), "\n");
  }
  return text;
}

}  // namespace txl::cli
