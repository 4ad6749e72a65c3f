#!/usr/bin/env bash
# Builds the package, checks its types and runs its tests, against
# TXL_SERVER and TXL_MODEL (default: what the repository's build has made).
#
#   python/check.sh               wheel from sdist, mypy, pyright, pytest, and the
#                                 smoke part with the oldest protobuf and grpcio
#   python/check.sh --cluster     also a local cluster of Ray with a worker killed
#
# PYTHON names the interpreter (default python3). All it installs lies in a
# temporary folder.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export TXL_SERVER=${TXL_SERVER:-$here/../build/bin/txl-server}
export TXL_MODEL=${TXL_MODEL:-$here/../models/shakespeare}
if [[ ! -x $TXL_SERVER || ! -d $TXL_MODEL ]]; then
  echo "check.sh: $TXL_SERVER or $TXL_MODEL is not there;" \
    "build the server, or set TXL_SERVER and TXL_MODEL" >&2
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { printf '== %s\n' "$*"; }

# An empty virtual environment: venv NAME PACKAGE...
venv() {
  local name=$1
  shift
  "${PYTHON:-python3}" -m venv "$work/$name"
  "$work/$name/bin/pip" install --quiet "$@"
}

# The tests against the package that NAME has installed: tests NAME FILE...
tests() {
  local name=$1
  shift
  (cd "$work" && "$work/$name/bin/pytest" -q -p no:cacheprovider \
    -c "$here/pyproject.toml" --rootdir "$here" "$@")
}

say "building sdist, and the wheel from it"
venv build build
"$work/build/bin/python" -m build --outdir "$work/dist" "$here"
wheel=$(ls "$work"/dist/*.whl)

say "types"
venv newest "$wheel[frames,midi]" polars pyarrow pytest hatchling mypy \
  'pyright[nodejs]' types-grpcio types-protobuf
(cd "$work" && newest/bin/mypy --config-file "$here/pyproject.toml" \
  --cache-dir "$work/mypy" -p txl_client)
(cd "$work" && newest/bin/mypy --strict --cache-dir "$work/mypy" \
  "$here/tests/typed/user.py")
(cd "$here" && "$work/newest/bin/pyright" \
  --pythonpath "$work/newest/bin/python")

say "tests with the newest protobuf and grpcio"
"$work/newest/bin/pip" list 2>/dev/null | grep -E '^(protobuf|grpcio) '
tests newest "$here/tests"

say "smoke part with the oldest"
venv oldest "$wheel" pytest protobuf==4.21.12 grpcio==1.51.3
tests oldest \
  "$here"/tests/{smoke,resume,errors,scripted,sessions,turn,channel,retry}_test.py

if [[ ${1:-} == --cluster ]]; then
  say "a local cluster of Ray"
  venv ray "$wheel[ray]" pytest
  tests ray "$here/tests/cluster/ray_check.py"
fi
say "all passed"
