#pragma once

// A session as the server knows it: an id is a name within its tenant, so that
// another tenant's session is as unknown as one that never was.

#include <compare>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/plain_name.h"

namespace txl {

// In order of tenants, then of ids.
class SessionName {
 public:
  SessionName() = default;  // of no session
  SessionName(std::string tenant, std::string id);
  // A literal is of the default tenant. An id that a client sent is not a
  // literal: it must come with its tenant, or it does not compile.
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

// Names of sessions.

// FIELD_INVALID `field` unless `id` is 1 to 64 characters of A-Z a-z 0-9 _ -.
// So are the ids of sessions and of requests, and the names of tenants.
absl::Status ValidateId(absl::string_view field, absl::string_view id);
absl::Status ValidateSessionId(absl::string_view session_id);

// 128 bits of OpenSSL's generator as 32 hexadecimal digits: a client that does
// not know the id cannot guess it. Internal when the generator has no entropy.
absl::StatusOr<std::string> RandomSessionId();

// Where the next page of ListSessions starts. Opaque to clients, so that its
// content can change.

// A token for the page after the session `last_id`.
std::string EncodePageToken(absl::string_view last_id);

// The id that EncodePageToken was given; anything that it did not make is
// FIELD_INVALID page_token.
absl::StatusOr<std::string> DecodePageToken(absl::string_view page_token);

}  // namespace txl
