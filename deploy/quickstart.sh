#!/usr/bin/env bash
# From a fresh clone to streamed text: installs what is missing, builds, starts
# txl-server with the model of this repository and generates with it.
#
#   deploy/quickstart.sh [PROMPT]
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/progress.sh

# Where ccache is used, clones in different folders share its results.
export CCACHE_BASEDIR=$PWD

prompt=${1:-"ROMEO:"}
model=models/shakespeare

say() { echo "quickstart: $*" >&2; }

# build TARGET...: a line every so many steps; with a failure, all that is said.
build() {
  NINJA_STATUS='  [%f of %t] ' ninja -C build "$@" | thinned 20 >&2
}

say "1 of 4: compiler and libraries"
deploy/setup.sh
say "2 of 4: what the build consists of"
if [ ! -f build/build.ninja ]; then
  cmake --preset release > .deps/configure.log 2>&1 ||
    { cat .deps/configure.log >&2; exit 1; }
fi
say "3 of 4: building txl-server and txl (minutes the first time)"
build txl-server txl
say "4 of 4: starting txl-server with $model"

work=$(mktemp -d)
build/bin/txl-server --model "$model" --listen 127.0.0.1:0 \
  > "$work/address" 2> "$work/log" &
server=$!
trap 'kill "$server" 2> /dev/null || true; wait "$server" 2> /dev/null || true
      rm -rf "$work"' EXIT

until grep -q '^listening on ' "$work/address"; do
  if ! kill -0 "$server" 2> /dev/null; then
    cat "$work/log" >&2
    exit 1
  fi
  sleep 0.05
done
address=$(sed -n 's/^listening on //p' "$work/address")

echo "txl-server serves $model on $address; txl generate says:" >&2
printf '%s' "$prompt"
build/bin/txl generate --server "$address" --prompt "$prompt" \
  --max-tokens 300 --temperature 0.8
echo
