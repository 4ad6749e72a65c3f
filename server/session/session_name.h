#pragma once

// A session as the server knows it: an id is a name within its tenant, so that
// another tenant's session is as unknown as one that never was.

#include <compare>
#include <string>

#include "absl/strings/string_view.h"
#include "server/base/tenant.h"

namespace txl {

// In order of tenants, then of ids.
class SessionName {
 public:
  SessionName() = default;  // of no session
  SessionName(std::string tenant, std::string id);
  // A literal is of the default tenant. An id that a client sent is none: it
  // has to come with whose it is, or it does not compile.
  SessionName(const char* id);
  static SessionName OfDefaultTenant(std::string id);

  const std::string& tenant() const { return tenant_; }
  const std::string& id() const { return id_; }
  bool empty() const { return id_.empty(); }  // "": of no session

  // One word for journals and files: "verona" of the default tenant, as it was
  // before there were tenants, "alice/verona" of another. No id has a "/".
  std::string text() const;
  static SessionName OfText(absl::string_view text);

  friend auto operator<=>(const SessionName&, const SessionName&) = default;

 private:
  std::string tenant_ = kDefaultTenant;
  std::string id_;
};

}  // namespace txl
