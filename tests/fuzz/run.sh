#!/usr/bin/env bash
# Every fuzz target for some time, from the kept corpus.
#
#   tests/fuzz/run.sh [SECONDS]    a target; 60
#
# Needs Clang. New inputs stay in build/fuzz/found; fails at the first finding.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${1:-60}
cmake -B build/fuzz -G Ninja -DTXL_FUZZ=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ > /dev/null
ninja -C build/fuzz --quiet fuzz
for program in build/fuzz/fuzz/*_fuzz; do
  name=$(basename "$program" _fuzz)
  mkdir -p "build/fuzz/found/$name"
  echo "fuzzing $name for $seconds s"
  "$program" "build/fuzz/found/$name" "tests/fuzz/corpus/$name" \
    -max_total_time="$seconds" -rss_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/$name-" > "build/fuzz/$name.log" 2>&1 ||
    { tail -30 "build/fuzz/$name.log"; exit 1; }
  grep -E 'number_of_executed_units|peak_rss_mb' "build/fuzz/$name.log"
done
