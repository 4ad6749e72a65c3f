#!/usr/bin/env bash
# From a fresh clone to streamed text: installs what is missing, builds, starts
# txl-server with the model of this repository and generates with it.
#
#   deploy/quickstart.sh [PROMPT]
set -euo pipefail
cd "$(dirname "$0")/.."

# Where ccache is used, clones in different folders share its results.
export CCACHE_BASEDIR=$PWD

prompt=${1:-"ROMEO:"}
model=models/shakespeare

deploy/setup.sh
if [ ! -f build/build.ninja ]; then
  cmake --preset release > /dev/null
fi
ninja -C build --quiet txl-server txl txl-model

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
