#!/usr/bin/env bash
# To streamed text: gets txl-server, starts it with the Shakespeare model and
# generates with it.
#
#   deploy/quickstart.sh [PROMPT]
#       from a fresh clone: installs what is missing and builds
#   deploy/quickstart.sh --prebuilt WHEEL [PROMPT]
#       builds nothing: installs a wheel of deploy/package.sh, with LibTorch for
#       CPUs, into the folder txl-venv beside it, which stays. Needs Python and
#       no other file of the repository
set -euo pipefail

torch_cpu_index=https://download.pytorch.org/whl/cpu

say() { echo "quickstart: $*" >&2; }

# build TARGET...: a line every so many steps; with a failure, all that is said.
build() {
  NINJA_STATUS='  [%f of %t] ' ninja -C build "$@" | thinned 20 >&2
}

# Sets `bin`, the folder of the programs, and `model`.
build_programs() {
  cd "$(dirname "$0")/.."
  . deploy/progress.sh
  # Where ccache is used, clones in different folders share its results.
  export CCACHE_BASEDIR=$PWD
  bin=build/bin
  model=models/shakespeare
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
}

# install_wheel WHEEL: sets what build_programs does. Of LibTorch the libraries
# are all that is used, so that nothing comes with it.
install_wheel() {
  local wheel venv torch pip
  wheel=$(realpath -e "$1")
  venv=$(dirname "$wheel")/txl-venv
  bin=$venv/bin
  model=shakespeare
  pip=("$bin/python" -m pip install --quiet --no-deps)
  if [ ! -x "$bin/python" ]; then
    say "1 of 3: making $venv"
    python3 -m venv "$venv"
  fi
  say "2 of 3: installing $(basename "$wheel") and LibTorch (200 MB)"
  "${pip[@]}" --force-reinstall "$wheel"
  torch=$("$bin/python" -c 'from importlib import metadata
print(*metadata.requires("txl-server"))')+cpu
  # As deploy/setup.sh: from where pip is told to look first.
  "${pip[@]}" "$torch" 2> "$venv/pip.log" ||
    "${pip[@]}" --index-url "$torch_cpu_index" "$torch" ||
    { cat "$venv/pip.log" >&2; exit 1; }
  say "3 of 3: starting txl-server with its model $model"
}

case "${1:-}" in
  --prebuilt)
    install_wheel "${2:?--prebuilt needs a wheel of deploy/package.sh}"
    shift 2
    ;;
  -h | --help) sed -n '2,10p' "$0"; exit 0 ;;
  -*) echo "quickstart.sh: unknown argument: $1" >&2; exit 2 ;;
  *) build_programs ;;
esac
prompt=${1:-"ROMEO:"}

work=$(mktemp -d)
"$bin/txl-server" --model "$model" --listen 127.0.0.1:0 \
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
"$bin/txl" generate --server "$address" --prompt "$prompt" \
  --max-tokens 300 --temperature 0.8
echo
