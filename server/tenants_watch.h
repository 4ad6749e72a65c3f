#pragma once

// The file of --tenants, read again when it changes.

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/base/line_file.h"
#include "server/base/task_thread.h"
#include "server/quota/tenants.h"

namespace txl {

// Thread-safe.
class TenantsWatch {
 public:
  // Reads the file, then looks for changes at every interval. Errors name the
  // file and what is wrong in it. `audit`: has what the log has, too; null:
  // none. It and the tenants outlive the watch.
  static absl::StatusOr<std::unique_ptr<TenantsWatch>> Start(
      std::string path, Tenants* tenants, Clock* clock,
      LineFile* audit = nullptr, absl::Duration interval = absl::Seconds(1));

  // Called from now on with each tenant that a new file does not have any more,
  // after its limits have gone; by the thread that reads the file, one call at
  // a time. It must not call the watch.
  void OnRemoved(std::function<void(const std::string& tenant)> removed)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Reads the file now. One that is broken changes nothing but a warning in the
  // log, once for each change; errors are those of Start.
  absl::Status Reload() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  TenantsWatch(std::string path, Tenants* tenants, Clock* clock,
               LineFile* audit)
      : path_(std::move(path)),
        tenants_(tenants),
        clock_(clock),
        audit_(audit) {}
  absl::Status Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LookAgain() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ReloadLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  Tenants* const tenants_;
  Clock* const clock_;
  LineFile* const audit_;
  absl::Mutex mutex_;
  std::string version_ ABSL_GUARDED_BY(mutex_);
  TenantTable table_ ABSL_GUARDED_BY(mutex_);  // of the file last taken
  std::function<void(const std::string&)> removed_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Periodic> periodic_;  // last
};

}  // namespace txl
