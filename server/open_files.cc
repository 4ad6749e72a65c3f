#include "server/open_files.h"

#include <sys/resource.h>

namespace txl {
namespace {

int64_t Number(rlim_t limit) {
  return limit == RLIM_INFINITY ? -1 : static_cast<int64_t>(limit);
}

}  // namespace

OpenFiles RaiseOpenFiles() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {-1, -1};
  OpenFiles files;
  files.before = Number(limit.rlim_cur);
  const rlim_t soft = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = soft;
  files.now = Number(limit.rlim_cur);
  return files;
}

}  // namespace txl
