#pragma once

// Early return on a non-OK absl::Status. Abseil ships no such macros in the
// version that Debian 12 has.

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define TXL_RETURN_IF_ERROR(expr)                             \
  do {                                                        \
    if (absl::Status txl_status = (expr); !txl_status.ok()) { \
      return txl_status;                                      \
    }                                                         \
  } while (false)

#define TXL_CONCAT_INNER(a, b) a##b
#define TXL_CONCAT(a, b) TXL_CONCAT_INNER(a, b)

// TXL_ASSIGN_OR_RETURN(auto x, FunctionReturningStatusOr());
#define TXL_ASSIGN_OR_RETURN(lhs, expr) \
  TXL_ASSIGN_OR_RETURN_IMPL(TXL_CONCAT(txl_statusor_, __LINE__), lhs, expr)
#define TXL_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                              \
  if (!tmp.ok()) return std::move(tmp).status();  \
  lhs = *std::move(tmp)
