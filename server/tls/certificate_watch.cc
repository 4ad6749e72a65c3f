#include "server/tls/certificate_watch.h"

#include <utility>

#include "model/base/status_macros.h"
#include "server/base/log.h"

namespace txl {
namespace {

// What `files` have; `old` itself where that is the same.
absl::StatusOr<std::shared_ptr<const TlsCredentials>> Renewed(
    const TlsFiles& files, std::shared_ptr<const TlsCredentials> old,
    absl::Time now) {
  TXL_ASSIGN_OR_RETURN(TlsTexts texts, ReadTlsTexts(files));
  if (texts == old->texts) {
    TXL_RETURN_IF_ERROR(CheckEnds(*old, files, now));
    return old;
  }
  return MakeTlsCredentials(std::move(texts), files);
}

void LogInUse(const TlsCredentials& credentials) {
  Log(LogSeverity::kInfo, "certificate",
      {{"not_after", absl::FormatTime(absl::RFC3339_sec, credentials.not_after,
                                      absl::UTCTimeZone())}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<CertificateWatch>> CertificateWatch::Start(
    TlsFiles files, absl::Duration interval) {
  TXL_ASSIGN_OR_RETURN(std::shared_ptr<const TlsCredentials> first,
                       LoadTlsCredentials(files));
  LogInUse(*first);
  return std::unique_ptr<CertificateWatch>(
      new CertificateWatch(std::move(files), std::move(first), interval));
}

CertificateWatch::CertificateWatch(TlsFiles files,
                                   std::shared_ptr<const TlsCredentials> first,
                                   absl::Duration interval)
    : files_(std::move(files)),
      current_(std::move(first)),
      thread_(interval, [this] { Look().IgnoreError(); }) {}

std::shared_ptr<const TlsCredentials> CertificateWatch::Current() const {
  absl::MutexLock lock(&mutex_);
  return current_;
}

absl::Status CertificateWatch::Look(absl::Time now) {
  absl::MutexLock look(&look_mutex_);
  const std::shared_ptr<const TlsCredentials> old = Current();
  const auto renewed = Renewed(files_, old, now);
  if (!renewed.ok()) {
    const std::string wrong(renewed.status().message());
    if (wrong != warned_) {
      Log(LogSeverity::kWarning, "certificate_kept", {{"error", wrong}});
    }
    warned_ = wrong;
    return renewed.status();
  }
  warned_.clear();
  if (*renewed == old) return absl::OkStatus();
  LogInUse(**renewed);
  absl::MutexLock lock(&mutex_);
  current_ = *renewed;
  return absl::OkStatus();
}

}  // namespace txl
