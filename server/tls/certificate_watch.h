#pragma once

// The certificates that new connections get: those of the files, as long as
// they can be served with. Renewing them needs no restart and costs no call:
// connections that are there go on.

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/base/task_thread.h"
#include "server/tls/tls_credentials.h"

namespace txl {

// Between two looks at the files.
inline constexpr absl::Duration kCertificateInterval = absl::Seconds(2);

// Thread-safe.
class CertificateWatch {
 public:
  // Reads the files; looks again at every interval until it is destroyed.
  // Errors: those of ReadTlsTexts and MakeTlsCredentials.
  static absl::StatusOr<std::unique_ptr<CertificateWatch>> Start(
      TlsFiles files, absl::Duration interval = kCertificateInterval);

  // For a connection that begins now. The same pointer until they change.
  std::shared_ptr<const TlsCredentials> Current() const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether clients need a certificate; never changes.
  bool verifies_clients() const { return !files_.client_ca.empty(); }
  // Whether clients need a certificate that is not revoked; never changes.
  bool has_revocations() const { return !files_.revoked.empty(); }

  // Takes what the files have now. Where it cannot be served with, or not any
  // more at `now`, the old stays, and the log has a warning, one for each thing
  // that is wrong. Errors: as Start.
  absl::Status Look(absl::Time now = absl::Now())
      ABSL_LOCKS_EXCLUDED(look_mutex_, mutex_);

 private:
  CertificateWatch(TlsFiles files, std::shared_ptr<const TlsCredentials> first,
                   absl::Duration interval);

  const TlsFiles files_;
  absl::Mutex look_mutex_;  // one look at a time
  std::string warned_ ABSL_GUARDED_BY(look_mutex_);
  mutable absl::Mutex mutex_;
  std::shared_ptr<const TlsCredentials> current_ ABSL_GUARDED_BY(mutex_);
  Periodic thread_;  // last
};

}  // namespace txl
