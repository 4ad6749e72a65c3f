#!/usr/bin/env bash
# Puts faults back that requests once met, and shows that each is found.
#
#   tests/fuzz/requests/planted.sh [FOLDER]
#
# FOLDER: where the server with a fault is built (build/planted); with ccache it
# takes a minute or two from the second time on. Exits 0 when the generator finds
# every patch of planted/ within 5,000 requests.
set -euo pipefail
cd "$(dirname "$0")/../../.."

root=$PWD
python=$root/.deps/venv/bin/python
build=$(realpath -m "${1:-build/planted}")
copy=$(mktemp -d)/copy
# The copy's results and this folder's are ccache's same.
export CCACHE_BASEDIR=$copy CCACHE_NOHASHDIR=1

git worktree add --quiet --detach "$copy" HEAD
trap 'git worktree remove --force "$copy"; rmdir "$(dirname "$copy")"' EXIT
ln -s "$root/.deps" "$copy/.deps"
rm -rf "$build"

missed=0
for patch in tests/fuzz/requests/planted/*.patch; do
  name=$(basename "$patch" .patch)
  git -C "$copy" apply "$root/$patch"
  cmake -S "$copy" -B "$build" --preset release > "$copy/configure.log" ||
    { cat "$copy/configure.log"; exit 1; }
  ninja -C "$build" --quiet txl-server
  "$python" -B tests/fuzz/requests/generate.py --requests 5000 --seed 1 \
    --server "$build/bin/txl-server" > "$copy/found.log" 2>&1 || true
  wanted=$(sed -n 's/^Finds: //p' "$patch")
  if found=$(grep -m1 -P "^VIOLATION.*$wanted" "$copy/found.log"); then
    echo "found $name: ${found:0:200}"
  else
    echo "MISSED $name"
    missed=1
  fi
  git -C "$copy" apply --reverse "$root/$patch"
done
exit "$missed"
