#pragma once

// TLS of gRPC's server with certificates that change while it runs. Not with
// gRPC's own watcher of files (experimental in 1.51), which serves with nothing
// once a key and a certificate do not fit each other.

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/tls/certificate_watch.h"

namespace txl {

// Outlives the servers that it makes credentials for: gRPC keeps no hold on
// what it asks for certificates. Thread-safe.
class TlsServerCredentials {
 public:
  // The certificates outlive it.
  explicit TlsServerCredentials(const CertificateWatch* certificates)
      : certificates_(certificates) {}
  TlsServerCredentials(const TlsServerCredentials&) = delete;
  TlsServerCredentials& operator=(const TlsServerCredentials&) = delete;

  // For one server: TLS 1.2 and 1.3; every handshake uses what the certificates
  // are then, and requires a client's where they verify clients. gRPC 1.51 has
  // no lists of revocation in a handshake whose certificates change: each call
  // by a revoked one is refused instead, health's too, before anything is asked
  // whose it is. Called once.
  std::shared_ptr<grpc::ServerCredentials> Make();

 private:
  // gRPC asks before every handshake, from any of its threads.
  static grpc_ssl_certificate_config_reload_status Renew(
      void* self, grpc_ssl_server_certificate_config** config);
  // gRPC asks before every call, from any of its threads: UNAUTHENTICATED where
  // the connection's certificate, or one that came with it, is revoked.
  static void Admit(void* self, grpc_auth_context* connection,
                    const grpc_metadata* metadata, size_t count,
                    grpc_process_auth_metadata_done_cb done, void* call);

  const CertificateWatch* const certificates_;
  absl::Mutex mutex_;
  // What gRPC has.
  std::shared_ptr<const TlsCredentials> given_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace txl
