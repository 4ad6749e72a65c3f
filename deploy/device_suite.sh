#!/usr/bin/env bash
# Tests and benchmarks of the device code on a machine with an NVIDIA GPU, which
# has CUDA's compiler, CMake, Ninja, g++ and Python with PyTorch, and may have
# neither network nor this project's libraries.
#
#   deploy/device_suite.sh --fetch             # once, where apt-get works
#   deploy/device_suite.sh OUT [--memcheck]    # on the machine with the GPU
#
# --fetch downloads Debian packages into .deps/device (12 MB), which travel with
# the checkout; without that folder the machine's own libraries are used.
#
# The second form configures and builds (in build/device), runs the tests with
# the label "device" and the benchmarks, and ends within 9 minutes. Into the
# folder OUT go suite.log, tests.xml and one JSON file for each benchmark. It
# fails when anything failed. --memcheck runs the tests under compute-sanitizer
# instead of the benchmarks, with a log for each tool: memory out of bounds
# (memcheck), races in shared memory (racecheck), and, when time is left,
# barriers that not all threads reach (synccheck).
#
# Variables: TXL_DEVICE_SECONDS, the time for all (540). TXL_DEVICE_SHAPE, the
# model or shape that is measured (tests/bench/wt103_large.json).
# TXL_DEVICE_FLAGS, more flags for CMake.
set -uo pipefail
cd "$(dirname "$0")/.."

packages=.deps/device
build=build/device
prefix=$PWD/$build/prefix
shape=${TXL_DEVICE_SHAPE:-tests/bench/wt103_large.json}
deadline=$((SECONDS + ${TXL_DEVICE_SECONDS:-540}))
failures=()

step() { printf '\n== %s (%d s left)\n' "$*" $((deadline - SECONDS)); }

# attempt NAME SECONDS COMMAND...: at most so long, and not beyond the deadline.
attempt() {
  local name=$1 seconds=$2 left=$((deadline - SECONDS))
  shift 2
  [ "$left" -gt 5 ] || { echo "$name: no time left"; failures+=("$name"); return 1; }
  [ "$seconds" -le "$left" ] || seconds=$left
  timeout -k 5 "$seconds" "$@" && return 0
  echo "$name: failed with $?"
  failures+=("$name")
  return 1
}

# The libraries that a package's files link to, as packages; not the compiler's.
libraries_of() {
  apt-cache depends --no-recommends --no-suggests --no-conflicts --no-breaks \
      --no-replaces --no-enhances "$1" |
    sed -n 's/^ *|\{0,1\}Depends: \([^<]*\)$/\1/p' |
    { grep -vE '^(libc6|libc6-dev|libgcc-s1|libstdc\+\+6|googletest)$' || true; }
}

fetch() {
  local names=(libabsl-dev libgtest-dev libgmock-dev nlohmann-json3-dev
    libcli11-dev librandom123-dev libutf8proc-dev libssl-dev zlib1g-dev
    libisal-dev libpcre2-dev libhwy-dev libbenchmark-dev libtomlplusplus-dev
    pkgconf-bin)
  local all=("${names[@]}") name
  for name in "${names[@]}"; do
    mapfile -t -O "${#all[@]}" all < <(libraries_of "$name")
  done
  mkdir -p "$packages" && rm -f "$packages"/*.deb
  # shellcheck disable=SC2046  # one word each
  (cd "$packages" && apt-get download -qq $(printf '%s\n' "${all[@]}" | sort -u)) &&
    du -sh "$packages"
}

# Sets flags and the environment so that the packages are found.
use_packages() {
  local triple libs package
  triple=$(g++ -print-multiarch)
  libs=$prefix/usr/lib/$triple
  mkdir -p "$prefix/bin"
  for package in "$packages"/*.deb; do
    dpkg -x "$package" "$prefix" || return 1
  done
  printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s/usr/bin/pkgconf "$@"\n' \
    "$libs" "$prefix" > "$prefix/bin/pkg-config"
  chmod +x "$prefix/bin/pkg-config"
  export PKG_CONFIG="$prefix/bin/pkg-config" PKG_CONFIG_SYSROOT_DIR=$prefix
  export PKG_CONFIG_LIBDIR=$libs/pkgconfig:$prefix/usr/share/pkgconfig
  export CPLUS_INCLUDE_PATH=$prefix/usr/include:$prefix/usr/include/$triple
  export LIBRARY_PATH=$libs
  # Not for Python: these libraries may be older than its own.
  libraries=(env LD_LIBRARY_PATH="$libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
  prefixes+=("$prefix/usr")
}

# As CMake wants it: the machine's own GPU; where there is none, CMake's default.
architectures() {
  local capability
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader \
    2> /dev/null | head -n 1 | tr -d .)
  [ -z "$capability" ] || echo "-DCMAKE_CUDA_ARCHITECTURES=$capability-real"
}

configure_and_build() {
  step "configure"
  if compgen -G "$packages/*.deb" > /dev/null; then
    use_packages || { failures+=(packages); return 1; }
  fi
  prefixes+=("$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)' \
    2> /dev/null)")
  # shellcheck disable=SC2046,SC2086  # flags; none where there is no GPU
  attempt configure 120 cmake -S . -B "$build" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release -DTXL_CUDA=ON -DTXL_SERVER=OFF \
    -DTXL_CONVERT=OFF -DTXL_WERROR=OFF -DTXL_UNITY=ON -DCMAKE_CUDA_FLAGS=-Xptxas=-v \
    "-DCMAKE_PREFIX_PATH=$(IFS=';'; echo "${prefixes[*]}")" \
    $(architectures) ${TXL_DEVICE_FLAGS:-} || return 1
  step "build"
  attempt build $((deadline - SECONDS - 60)) "${libraries[@]}" ninja -C "$build" --quiet -k 0 device_suite
}

tests() {
  step "tests"
  attempt tests 180 "${libraries[@]}" ctest --test-dir "$build" -L device -j 4 \
    --no-tests=error --timeout 120 --output-on-failure \
    --test-output-size-passed 8192 \
    --output-junit "$out/tests.xml"
}

# check TOOL FLAGS -- PROGRAM...: test programs under a tool of
# compute-sanitizer, six at a time. What they print goes to OUT/TOOL.log.
check() {
  local tool=$1 flags=() logs program name
  shift
  while [ "$1" != -- ]; do flags+=("$1"); shift; done
  shift
  step "$tool"
  logs=$(mktemp -d)
  for program in "$@"; do
    while [ "$(jobs -rp | wc -l)" -ge 6 ]; do wait -n; done
    (
      name=${program##*/}
      attempt "$tool $name" 300 "${libraries[@]}" compute-sanitizer \
        --tool "$tool" --error-exitcode 9 "${flags[@]}" "$program" \
        --gtest_brief=1 "--gtest_filter=${filter:-*}" \
        > "$logs/$name.log" 2>&1 || touch "$logs/$name.failed"
      echo "$tool $name: done ($((deadline - SECONDS)) s left)"
    ) &
  done
  wait
  for program in "$@"; do
    name=${program##*/}
    printf '\n== %s %s\n' "$tool" "$name" >> "$out/$tool.log"
    cat "$logs/$name.log" >> "$out/$tool.log"
    [ -e "$logs/$name.failed" ] || continue
    failures+=("$tool $name")
    tail -n 40 "$logs/$name.log"
  done
  rm -rf "$logs"
}

# Test programs under tools that make them 10 to 100 times slower. Left out:
# those that run the same kernels as others, only longer (45,000 sampled rows,
# as many random shapes as a minute holds), and, under the tools that follow
# shared memory and barriers, whole models whose kernels other tests launch.
check_all() {
  local program programs=() filter=
  export TXL_TEST_DATA=$PWD/tests  # ctest says so otherwise
  rm -f "$out"/{memcheck,racecheck,synccheck}.log
  for program in "$build"/tests/*_device; do
    case "$program" in
      *_sampling_long_test_device | *_shapes_test_device) ;;
      *) programs+=("$program") ;;
    esac
  done
  # Tests provoke errors of calls on purpose: capture, memory.
  check memcheck --report-api-errors no -- "${programs[@]}"
  filter='-*Golden*:*Shipped*'
  check racecheck -- "${programs[@]}"
  if [ $((deadline - SECONDS)) -gt 60 ]; then
    check synccheck -- "${programs[@]}"
  else
    echo "synccheck: left out, no time"
  fi
}

# benchmark NAME PROGRAM FLAGS...: of the shape on the device, at most 90 s; the
# flags say which step.
benchmark() {
  local name=$1 program=$2
  shift 2
  step "benchmark $name"
  attempt "$name" 90 "${libraries[@]}" "$build/bin/$program" \
    --model "$shape" --device cuda --json "$out/$name.json" "$@"
}

benchmarks() {
  local bf16=(--step native --weights bf16 --memory bf16)
  step "benchmark kernels"
  attempt kernels 60 "${libraries[@]}" "$build/bin/txl-bench-cuda-kernels" \
    --json "$out/kernels.json"
  attempt splits 60 "${libraries[@]}" "$build/bin/txl-bench-cuda-kernels" \
    --rows 1,2,4,8,16,32,64,128 --splits 0,1,2,3,4,5,6,8,10,13,17,26,52 \
    --json "$out/splits.json"
  attempt kernels-overlap 60 "${libraries[@]}" "$build/bin/txl-bench-cuda-kernels" \
    --overlap --json "$out/kernels-overlap.json"
  benchmark decode-bf16 txl-bench-engine "${bf16[@]}" \
    --sessions 1,8,32,128,512 --steps 100
  # What the self-test takes: its line in the log. A refusal is a failure.
  benchmark self-test-bf16 txl-bench-engine --step auto --weights bf16 \
    --memory bf16 --sessions 1 --steps 10
  benchmark decode-apart txl-bench-engine "${bf16[@]}" --overlapped-rows 0 \
    --sessions 1,8,32,128,512 --steps 100
  benchmark decode-f32 txl-bench-engine --step native --sessions 1,32,128 \
    --steps 50
  benchmark prefill-bf16 txl-bench-engine "${bf16[@]}" --prefill 4096
  benchmark decode-torch txl-bench-engine --step torch --sessions 1,32,128 \
    --steps 20
  # A step's time with few sessions in memory, and with all that fit.
  benchmark slots-32 txl-bench-engine "${bf16[@]}" --slots 32 --sessions 1,32 \
    --steps 200
  benchmark slots-auto txl-bench-engine "${bf16[@]}" --slots auto \
    --sessions 1,32 --steps 200
  benchmark score-bf16 txl-bench-engine "${bf16[@]}" --score 128 \
    --sessions 32 --steps 20 --tail-share 0.2
  benchmark scheduler-bf16 txl-bench-scheduler "${bf16[@]}" \
    --sessions 32,128 --steps 300
  benchmark prompt-beside-bf16 txl-bench-scheduler "${bf16[@]}" --sessions 32 \
    --steps 200 --prompt-rows 128 --beside-prompt 16384
  benchmark window-bf16 txl-bench-window "${bf16[@]}" --seconds 1
}

run() {
  prefixes=()
  libraries=(env)
  nvidia-smi --query-gpu=name,compute_cap,driver_version,memory.total \
    --format=csv 2> /dev/null || echo "no GPU, or no driver of one"
  nvcc --version | tail -n 2
  cmake --version | head -n 1
  if configure_and_build; then
    tests
    if [ "$memcheck" = 1 ]; then check_all; else benchmarks; fi
  fi
  step "done"
  [ "${#failures[@]}" = 0 ] && { echo "all passed"; return 0; }
  printf 'FAILED: %s\n' "${failures[@]}"
  return 1
}

memcheck=0
out=
for argument in "$@"; do
  case "$argument" in
    --fetch) fetch; exit ;;
    --memcheck) memcheck=1 ;;
    -h | --help) sed -n '2,/^$/{/^#/p}' "$0"; exit 0 ;;
    -*) echo "device_suite.sh: unknown argument: $argument" >&2; exit 2 ;;
    *) out=$argument ;;
  esac
done
[ -n "$out" ] || { echo "usage: deploy/device_suite.sh OUT [--memcheck] | --fetch" >&2; exit 2; }
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
run 2>&1 | tee "$out/suite.log"
