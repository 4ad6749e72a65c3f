#!/usr/bin/env bash
# Puts faults back that requests once met, and shows that each is found.
#
#   tests/fuzz/requests/planted.sh
#
# Builds txl-server with each patch of planted/ in a copy of the last commit,
# build/planted; ccache has most of it. Exits 0 when the generator finds every
# one within 5,000 requests. "Finds:" in a patch is what has to be printed.
set -euo pipefail
cd "$(dirname "$0")/../../.."

root=$PWD
requests=tests/fuzz/requests
copy=$root/build/planted
# What the copy compiles is the same file to ccache as here.
export CCACHE_BASEDIR=$copy CCACHE_NOHASHDIR=1

remove() {
  git worktree remove --force "$copy" 2> /dev/null || rm -rf "$copy"
}
remove
git worktree prune
trap remove EXIT
git worktree add --quiet --detach "$copy" HEAD
cp -al .deps "$copy/.deps"
(cd "$copy" && cmake --preset release > configure.log) ||
  { cat "$copy/configure.log"; exit 1; }

missed=0
for patch in "$requests"/planted/*.patch; do
  name=$(basename "$patch" .patch)
  git -C "$copy" apply "$root/$patch"
  ninja -C "$copy/build" --quiet txl-server
  .deps/venv/bin/python -B "$requests/generate.py" --requests 5000 \
    --server "$copy/build/bin/txl-server" > "$copy/found.log" 2>&1 || true
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
