#!/usr/bin/env bash
# From a fresh clone to the test suite's result.
#
#   deploy/test.sh         build (release) and all tests; no container; where
#                          nvcc is, the device's kernels are compiled too
#   deploy/test.sh --all [PART...]
#                          also: address, undefined-behaviour and thread
#                          sanitizers, kernels without vector instructions,
#                          fuzzing, a million simulated seeds, a store that
#                          fails at every call, proto lint,
#                          format, third-party clients by reflection and over
#                          HTTP, the page in Chromium, the Python package, a
#                          soak, every attack in its whole form, two hundred
#                          thousand generated requests under sanitizers, a
#                          thousand kills of a server with a store, two hundred
#                          faults of a fleet, deployment, image and packages (as root);
#                          fails where a prerequisite is missing. PART: only
#                          these of the list below (hours, all of them)
set -euo pipefail
cd "$(dirname "$0")/.."

# Where ccache is used, clones in different folders share its results, also of
# the sanitizers' builds, whose debug information names the folder.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
# ctest runs three programs at once, as many of them wait more than they
# calculate; more threads than cores wait for each other.
export OMP_NUM_THREADS=1

# Each is a function part_NAME. The first two are made without --all, too; the
# others use what `release` has built.
parts="release device lint clients page python checkpoints fuzz store simulation
  scalar sanitizers soak attacks requests survival rehearsal deployment image
  package"

all=0
case "${1:-}" in
  "") chosen="release device" ;;
  --all)
    all=1
    shift
    chosen=${*:-$parts}
    ;;
  *) chosen=unknown ;;
esac
for part in $chosen; do
  if ! grep -qw -- "$part" <<< "$parts"; then
    echo "usage: deploy/test.sh [--all [PART...]]; parts:" $parts >&2
    exit 2
  fi
done

step() { printf '\n== %s\n' "$*"; }
python() { .deps/venv/bin/python -B "$@"; }

# build_and_test PRESET BUILD_FOLDER TARGETS [ctest arguments]
# TARGETS: Ninja's, in one word; empty: all.
build_and_test() {
  local preset=$1 folder=$2 targets=$3
  shift 3
  step "$preset: build"
  cmake --preset "$preset" > .deps/configure.log 2>&1 ||
    { cat .deps/configure.log; return 1; }
  # shellcheck disable=SC2086  # several targets
  ninja -C "$folder" --quiet $targets
  step "$preset: tests"
  ctest --test-dir "$folder" --output-on-failure -j3 --no-tests=error "$@" |
    grep -avE '^ +Start '
}

part_release() {
  build_and_test release build ""
}

# Nothing of it runs here (docs/cuda.md). With --all also what runs on a device
# only, its tests and benchmarks, and for every device that is served.
part_device() {
  if [ "$all" = 1 ]; then
    step "self-test at load: every format on the emulated device"
    TXL_TEST_DATA=tests build/tests/txl_server_step_trial_cuda_test \
      --gtest_brief=1
  fi
  command -v nvcc > /dev/null || return 0
  step "device code: build"
  local device=txl_model_cuda_kernels architectures=90-real
  if [ "$all" = 1 ]; then
    device=device_suite architectures="80-real;90"
  fi
  cmake --preset cuda -D CMAKE_CUDA_ARCHITECTURES="$architectures" \
    > .deps/configure.log 2>&1 || { cat .deps/configure.log; return 1; }
  ninja -C build/cuda --quiet "$device"
}

part_lint() {
  step "proto lint"
  (cd proto && npx --yes @bufbuild/buf lint)
  step "format"
  git ls-files '*.h' '*.cc' '*.cu' | xargs clang-format --dry-run --Werror
}

part_clients() {
  step "third-party client by reflection"
  python tests/end_to_end/reflection_client.py build/bin/txl-server
  if command -v promtool > /dev/null; then
    step "metrics through promtool"
    python tests/end_to_end/promtool_check.py build/bin/txl-server build/bin/txl
  fi
  step "spans through OpenTelemetry's own definitions"
  python tests/end_to_end/otlp_spans.py
  step "third-party clients over HTTP, each from its registry"
  tests/clients/run.sh --server build/bin/txl-server
}

part_page() {
  step "the page in Chromium: on a server, and on a stand-in"
  python tests/page/on_server.py build/bin/txl-server
}

part_python() {
  step "the Python package: types, wheels, tests on two sets of libraries"
  python/check.sh --cluster
}

part_checkpoints() {
  step "every golden case through txl-model logprobs"
  python tests/model/tool/golden_report.py build/bin/txl-model | tail -5
  step "every native checkpoint, converted, through txl-model logprobs"
  python tests/model/tool/golden_report.py build/bin/txl-model --native |
    tail -5
  step "hostile checkpoints"
  python tests/model/tool/hostile_report.py build/bin/txl-model | tail -1
  step "memory of converting 4.4 GB"
  python tests/model/tool/large_conversion.py build/bin/txl-model \
    .deps/large 2> /dev/null
  rm -rf .deps/large
}

part_fuzz() {
  step "fuzzing"
  tests/fuzz/run.sh "${TXL_FUZZ_SECONDS:-60}"
}

part_store() {
  step "the store of sessions: faults and power losses at every call, every byte"
  TXL_STORE_FAULTS=all build/tests/txl_server_store_test --gtest_brief=1 \
    --gtest_filter='*Faults*:*FailingCalls*:JournalDamage*' 2> /dev/null
}

part_simulation() {
  step "simulation: a million seeds"
  build/tests/txl_server_simulation_test --seed 1 --seeds 500000 &
  build/tests/txl_server_simulation_test --seed 500001 --seeds 500000
  wait $!
  step "the functions in Redis: a million histories"
  build/tests/txl_server_store_redis_history_test --seed 1 --seeds 500000 &
  build/tests/txl_server_store_redis_history_test --seed 500001 --seeds 500000
  wait $!
}

part_scalar() {
  build_and_test scalar build/scalar "txl_model_cpu_kernels_test
    txl_model_cpu_test txl_model_cpu_allocation_test" -L cpu
}

# Without "long": millions of draws through code that the other tests cover,
# ten times slower here. Without "memory": the sanitizer's own would count.
# ThreadSanitizer: what runs without the threads of LibTorch and gRPC, which are
# not built for it; it takes their own synchronisation for none.
part_sanitizers() {
  build_and_test asan build/asan "" -LE "e2e|long|memory"
  build_and_test tsan build/tsan "txl_server_base_test txl_server_metrics_test
    txl_server_session_test txl_server_scheduler_test txl_server_store_test
    txl_server_api_threads_test txl_server_exporter_test" -L tsan
}

part_soak() {
  step "soak: connections cut at random, mixed load"
  TXL_TEST_DATA=tests TXL_CUT_TURNS="${TXL_CUT_TURNS:-900}" \
    TXL_SOAK_SECONDS="${TXL_SOAK_SECONDS:-120}" \
    build/tests/txl_end_to_end_test --gtest_brief=1 \
    --gtest_filter='LostConnection.AtRandom*:Soak.*' 2> /dev/null
}

part_attacks() {
  step "attacks, whole: on the server, and through HAProxy"
  python tests/attack/attack.py
  python tests/attack/attack.py --proxy
}

# Several servers, each with a part of the requests and a seed of its own.
part_requests() {
  local seed seeds=4
  step "generated requests: a server with sanitizers, build"
  cmake --preset asan > .deps/configure.log 2>&1 ||
    { cat .deps/configure.log; return 1; }
  ninja -C build/asan --quiet txl-server
  step "generated requests: 200,000 on it, with a model of two thin layers"
  rm -rf build/asan/small
  build/bin/txl-model random build/asan/small \
    --spec tests/fuzz/requests/small.json
  for seed in $(seq "$seeds"); do
    python tests/fuzz/requests/generate.py --sanitized --seed "$seed" \
      --weights build/asan/small \
      --requests $((${TXL_REQUESTS:-200000} / seeds)) \
      --server build/asan/bin/txl-server
  done
  step "generated requests: faults that were put back are found"
  tests/fuzz/requests/planted.sh
}

part_survival() {
  local durability cache
  for durability in turn token; do
    step "survival: five hundred kills with --durability $durability"
    python tests/survival/kills.py --kills "${TXL_KILLS:-500}" --clients 8 \
      --durability "$durability"
    step "survival: fifty kills of a server on an emulated device"
    python tests/survival/kills.py --server build/tests/txl_emulated_server \
      --cuda build/bin/txl-model --kills 50 --clients 8 \
      --durability "$durability"
  done
  for cache in auto 1MiB; do
    step "survival: five hundred kills under prompts that begin alike, $cache"
    python tests/survival/prefixes.py --kills "${TXL_KILLS:-500}" \
      --prefix-cache "$cache" --model-program build/bin/txl-model
  done
  step "survival: 100,000 stored sessions, a damaged store"
  python tests/survival/starts.py --sessions 100000
  python tests/survival/damage.py --trials 1000
}

part_rehearsal() {
  local durability fsync
  for durability in turn token; do
    step "rehearsal: a hundred faults of three servers, --durability $durability"
    python tests/scale/rehearse.py --faults "${TXL_FAULTS:-100}" --longest 60 \
      --clients 20 --each 4 --proxy --durability "$durability"
  done
  for fsync in always everysec; do
    step "rehearsal: Redis is killed, appendfsync $fsync"
    python tests/scale/rehearse.py --only store_kill --faults 10 \
      --clients 8 --fsync "$fsync"
  done
  step "rehearsal: two servers change the same sessions"
  python tests/scale/conflicts.py --commits 2000
}

part_deployment() {
  step "deployment: Kubernetes manifests, systemd unit"
  python tests/deploy/kubernetes_test.py
  python tests/deploy/kubernetes_overlays_test.py
  python tests/deploy/systemd_test.py
  step "deployment: a call is followed through HAProxy"
  python tests/end_to_end/follow_call.py
  step "deployment: the compose file's parts together"
  python tests/deploy/deployment_test.py
}

part_image() {
  step "image: built, run read-only, stopped under load"
  tests/deploy/image_test.sh
}

part_package() {
  step "packages: made, installed on empty systems, used"
  deploy/package.sh
  python tests/deploy/package_test.py
}

step "set-up"
if [ "$all" = 1 ]; then deploy/setup.sh --all; else deploy/setup.sh; fi
for part in $chosen; do
  "part_$part"
done
step "all passed"
