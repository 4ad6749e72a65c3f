#include "server/quota/tenants.h"

#include <utility>

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

}  // namespace txl
