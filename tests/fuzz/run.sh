#!/usr/bin/env bash
# Every fuzz target for some time, from the kept corpus.
#
#   tests/fuzz/run.sh [SECONDS]    a target; 60
#
# Needs Clang. One target a core. New inputs stay in build/fuzz/found;
# fails when a target found something.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${1:-60}
cmake -B build/fuzz -G Ninja -DTXL_FUZZ=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ > /dev/null
ninja -C build/fuzz --quiet fuzz

fuzz_one() {
  local program=$1 name
  name=$(basename "$program" _fuzz)
  mkdir -p "build/fuzz/found/$name"
  "$program" "build/fuzz/found/$name" "tests/fuzz/corpus/$name" \
    -max_total_time="$seconds" -rss_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/$name-" > "build/fuzz/$name.log" 2>&1 ||
    { tail -30 "build/fuzz/$name.log"; return 1; }
  grep -E 'number_of_executed_units|peak_rss_mb' "build/fuzz/$name.log" |
    sed "s/^/$name: /"
}
export -f fuzz_one
export seconds
# Not what OMP_NUM_THREADS says, which nproc would.
cores=$(env -u OMP_NUM_THREADS nproc)
echo "fuzzing each target for $seconds s, $cores at a time"
printf '%s\n' build/fuzz/fuzz/*_fuzz |
  xargs -P "$cores" -I{} bash -euo pipefail -c 'fuzz_one {}'
