#include "server/quota/tenants.h"

#include <toml++/toml.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"
#include "program/flag_checks.h"
#include "program/nearest_name.h"
#include "server/base/plain_name.h"

namespace txl {

Tenants::Tenants(std::function<int32_t(const std::string&)> add_counts)
    : add_counts_(std::move(add_counts)),
      other_counts_(add_counts_(kOtherTenants)) {}

void Tenants::SetLimits(const std::map<std::string, TenantLimits>& limits,
                        absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, account] : accounts_) {
    if (limits.count(name) == 0) account->SetLimits(TenantLimits(), now);
  }
  for (const auto& [name, limit] : limits) {
    std::unique_ptr<TenantAccount>& account = accounts_[name];
    if (account == nullptr) {
      account =
          std::make_unique<TenantAccount>(name, limit, add_counts_(name), now);
    } else {
      account->SetLimits(limit, now);
      if (account->counts() == other_counts_) {
        account->CountAt(add_counts_(name));
      }
    }
  }
}

TenantAccount* Tenants::Find(const std::string& name, absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  std::unique_ptr<TenantAccount>& account = accounts_[name];
  if (account == nullptr) {
    account = std::make_unique<TenantAccount>(name, TenantLimits(),
                                              other_counts_, now);
  }
  return account.get();
}

std::vector<TenantUse> Tenants::Use(absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  std::vector<TenantUse> all;
  for (const auto& [name, account] : accounts_) {
    all.push_back(account->Use(now));
  }
  return all;
}

namespace {

constexpr double kLeastWeight = 0.001;
constexpr double kMostWeight = 1e6;
constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 2;

using Number = std::optional<int64_t> TenantLimits::*;

struct NumberKey {
  const char* name;
  Number field;
};

constexpr NumberKey kNumbers[] = {
    {"turns", &TenantLimits::turns},
    {"sessions", &TenantLimits::sessions},
    {"tokens_in_per_minute", &TenantLimits::tokens_in_per_minute},
    {"tokens_out_per_minute", &TenantLimits::tokens_out_per_minute},
    {"calls_per_second", &TenantLimits::calls_per_second},
};

std::vector<std::string> KeyNames() {
  std::vector<std::string> names = {"bytes", "count_cached_tokens",
                                    "longest_turn", "weight"};
  for (const NumberKey& key : kNumbers) names.emplace_back(key.name);
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

absl::StatusOr<int64_t> Whole(const toml::node& node) {
  // Also 5.0: numbers of flags are read so.
  const std::optional<int64_t> value =
      node.is_number() ? node.value<int64_t>() : std::nullopt;
  if (value.has_value() && *value >= 1 && *value <= kMost) return *value;
  return Wrong("must be a whole number, at least 1");
}

// A number of bytes, or a text of one with a unit, as flags have it.
absl::StatusOr<int64_t> Size(const toml::node& node) {
  auto text = node.value_exact<std::string>();
  if (!text.has_value()) {
    const absl::StatusOr<int64_t> bytes = Whole(node);
    if (bytes.ok()) return bytes;
    return Wrong(
        "must be a whole number, at least 1, or a size like \"64KiB\"");
  }
  const std::string error = SizeBetween(1, kMost)(*text);
  int64_t bytes = 0;
  if (error.empty() && absl::SimpleAtoi(*text, &bytes)) return bytes;
  return Wrong(error);
}

absl::StatusOr<double> Weight(const toml::node& node) {
  const std::optional<double> value = node.value<double>();
  if (node.is_number() && *value >= kLeastWeight && *value <= kMostWeight) {
    return *value;
  }
  return Wrong(absl::StrFormat("must be a number in %g..%.0f", kLeastWeight,
                               kMostWeight));
}

absl::StatusOr<absl::Duration> Time(const toml::node& node) {
  const auto text = node.value_exact<std::string>();
  absl::Duration time;
  if (text.has_value() && absl::ParseDuration(*text, &time) &&
      time > absl::ZeroDuration() && time < absl::InfiniteDuration()) {
    return time;
  }
  return Wrong("must be a time above 0, like \"90s\" or \"10m\"");
}

absl::StatusOr<bool> TrueOrFalse(const toml::node& node) {
  const auto value = node.value_exact<bool>();
  if (value.has_value()) return *value;
  return Wrong("must be true or false");
}

absl::Status SetKey(const std::string& key, const toml::node& node,
                    TenantLimits& limits) {
  if (key == "weight") {
    TXL_ASSIGN_OR_RETURN(limits.weight, Weight(node));
    return absl::OkStatus();
  }
  if (key == "longest_turn") {
    TXL_ASSIGN_OR_RETURN(limits.longest_turn, Time(node));
    return absl::OkStatus();
  }
  if (key == "count_cached_tokens") {
    TXL_ASSIGN_OR_RETURN(limits.count_cached_tokens, TrueOrFalse(node));
    return absl::OkStatus();
  }
  if (key == "bytes") {
    TXL_ASSIGN_OR_RETURN(limits.bytes, Size(node));
    return absl::OkStatus();
  }
  for (const NumberKey& number : kNumbers) {
    if (key != number.name) continue;
    TXL_ASSIGN_OR_RETURN(limits.*number.field, Whole(node));
    return absl::OkStatus();
  }
  return Wrong(absl::StrCat("is not a quota", DidYouMean(key, KeyNames())));
}

absl::Status CheckName(const std::string& name) {
  if (!IsPlainName(name))
    return Wrong("is not a name of 1 to 64 characters of A-Z a-z 0-9 _ -");
  if (name == kOtherTenants) {
    return Wrong("stands for all that are not in the file");
  }
  return absl::OkStatus();
}

absl::StatusOr<TenantLimits> ReadTenant(const std::string& name,
                                        const toml::node& node,
                                        const std::string& where) {
  const toml::table* const keys = node.as_table();
  absl::Status status = CheckName(name);
  if (status.ok() && keys == nullptr) status = Wrong("must be a table");
  if (!status.ok()) return Wrong(absl::StrCat(where, ": ", status.message()));
  TenantLimits limits;
  for (const auto& [toml_key, value] : *keys) {
    const std::string key(toml_key.str());
    status = SetKey(key, value, limits);
    if (status.ok()) continue;
    return Wrong(absl::StrCat(where, ".", key, ": ", status.message()));
  }
  return limits;
}

}  // namespace

absl::StatusOr<TenantTable> ParseTenants(absl::string_view text,
                                         const std::string& path) {
  toml::table file;
  try {
    file = toml::parse(std::string_view(text.data(), text.size()), path);
  } catch (const toml::parse_error& error) {
    return Wrong(absl::StrCat(path, ":", error.source().begin.line, ": ",
                              std::string(error.description())));
  }
  TenantTable tenants;
  for (const auto& [toml_key, node] : file) {
    const std::string key(toml_key.str());
    if (key != "tenant" || !node.is_table()) {
      const std::string meant =
          key == "tenant" ? "" : DidYouMean(key, {"tenant"});
      return Wrong(absl::StrCat(
          path, ": ", key, ": only tables [tenant.NAME] are known", meant));
    }
    for (const auto& [toml_name, tenant] : *node.as_table()) {
      const std::string name(toml_name.str());
      TXL_ASSIGN_OR_RETURN(
          tenants[name],
          ReadTenant(name, tenant, absl::StrCat(path, ": tenant.", name)));
    }
  }
  if (tenants.size() > kMostTenants) {
    return Wrong(absl::StrCat(path, ": has ", tenants.size(),
                              " tenants, more than ", kMostTenants));
  }
  return tenants;
}

absl::StatusOr<TenantTable> ReadTenants(const std::string& path) {
  TXL_ASSIGN_OR_RETURN(const std::string text,
                       ReadRegularFile(path, kMostTenantsFileBytes));
  return ParseTenants(text, path);
}

}  // namespace txl
