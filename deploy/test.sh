#!/usr/bin/env bash
# From a fresh clone to the test suite's result.
#
#   deploy/test.sh         build (release) and all tests; no container
#   deploy/test.sh --all   also: AddressSanitizer and ThreadSanitizer runs, proto
#                          lint, format, a third-party client by reflection;
#                          fails where a prerequisite is missing
set -euo pipefail
cd "$(dirname "$0")/.."

# Where ccache is used, clones in different folders share its results.
export CCACHE_BASEDIR=$PWD

all=0
case "${1:-}" in
  "") ;;
  --all) all=1 ;;
  *) echo "usage: deploy/test.sh [--all]" >&2; exit 2 ;;
esac

step() { printf '\n== %s\n' "$*"; }

# run_preset PRESET BUILD_FOLDER [ctest arguments]
run_preset() {
  local preset=$1 folder=$2
  shift 2
  step "$preset: build"
  cmake --preset "$preset" > /dev/null
  ninja -C "$folder" --quiet
  step "$preset: tests"
  ctest --test-dir "$folder" --output-on-failure -j2 --no-tests=error "$@" |
    grep -vE '^ +Start '
}

step "set-up"
if [ "$all" = 1 ]; then deploy/setup.sh --all; else deploy/setup.sh; fi

run_preset release build

if [ "$all" = 1 ]; then
  step "proto lint"
  npx --yes @bufbuild/buf lint proto
  step "format"
  git ls-files '*.h' '*.cc' | xargs clang-format --dry-run --Werror
  step "third-party client by reflection"
  .deps/venv/bin/python tests/end_to_end/reflection_client.py build/bin/txl-server
  run_preset asan build/asan -LE 'e2e|slow'
  # LibTorch is not built for ThreadSanitizer: only what runs without it.
  run_preset tsan build/tsan -L tsan
fi
step "all passed"
