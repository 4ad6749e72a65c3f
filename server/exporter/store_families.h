#pragma once

// The store of sessions -> Prometheus's families.

#include "server/exporter/family_list.h"
#include "server/metrics/server_status.h"

namespace txl {

// Without a store the families have no sample.
void AddStoreFamilies(const ServerStatus& status, FamilyList& out);

}  // namespace txl
