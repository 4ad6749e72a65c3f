#!/usr/bin/env bash
# What is installed: manual pages and completions beside the programs, and the
# client package, used by a project of its own:
#   package_test.sh BUILD_FOLDER TXL_SERVER MODEL
# Installs into a temporary folder, builds client/example there against nothing
# but that, and lets it stream text from a server.
set -euo pipefail
build=$1 server=$2 model=$3
source_dir=$(cd "$(dirname "$0")/../../.." && pwd)
work=$(mktemp -d)
server_pid=
finish() {
  [ -z "$server_pid" ] || kill "$server_pid" 2> /dev/null || true
  rm -rf "$work"
}
trap finish EXIT

cmake --install "$build" --component programs --prefix "$work/programs" \
  > /dev/null
# The folder can be moved, and what it needs of the checkout is in it.
mv "$work/programs" "$work/moved"
share=$work/moved/share
for program in txl txl-server txl-model; do
  # An installed program finds its libraries.
  "$work/moved/bin/$program" --version > /dev/null
  grep -q "^.TH $program 1 " "$share/man/man1/$program.1"
  bash -n "$share/bash-completion/completions/$program"
  grep -q -- "-l version" "$share/fish/vendor_completions.d/$program.fish"
done
if readelf -d "$work"/moved/bin/* | grep -E 'R(UN)?PATH' | grep -F "$source_dir"
then
  echo "an installed program looks for libraries in the source folder" >&2
  exit 1
fi
(cd / && "$work/moved/bin/txl-server" --model shakespeare --check-config) \
  > /dev/null

cmake --install "$build" --component client --prefix "$work/prefix" > /dev/null
# Nothing of the checkout is used, and nothing internal is installed.
if grep -rlF "$source_dir" "$work/prefix" --include='*.cmake' --include='*.h'; then
  echo "an installed file names the source folder" >&2
  exit 1
fi
for proto in txl/v1/generation_service grpc/health/v1/health; do
  test -f "$work/prefix/share/txl/proto/$proto.proto"
done
cp -r "$source_dir/client/example" "$work/example"
cmake -S "$work/example" -B "$work/build" -G Ninja \
  -DCMAKE_PREFIX_PATH="$work/prefix" > "$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/build" > "$work/log" || { cat "$work/log"; exit 1; }

socket=unix:$work/socket
"$server" --model "$model" --listen "$socket" --log-level error > "$work/out" &
server_pid=$!
until grep -q '^listening on ' "$work/out"; do
  kill -0 "$server_pid"
  sleep 0.1
done
text=$("$work/build/stream_text" "$socket" example ROMEO:)
[ "${#text}" -ge 20 ] || { echo "too little text: '$text'" >&2; exit 1; }
# A second turn continues the session; an unknown server is an error.
"$work/build/stream_text" "$socket" example "And then" > /dev/null
if "$work/build/stream_text" nowhere example x 2> "$work/error"; then exit 1; fi
grep -q nowhere "$work/error"
echo "passed: $(printf %s "$text" | head -c 60 | tr '\n' ' ')..."
