#!/usr/bin/env bash
# Builds the Dockerfile's image from this checkout and uses it as its users do:
# a read-only container, not as root, generates text, for a client outside of it
# too, serves a model that is mounted, is configured by variables, and ends well
# on SIGTERM under load. Needs build/bin/txl, the client outside.
#
#   tests/deploy/image_test.sh           with podman, as root; no engine, registry
#                                        or container settings are needed, see
#                                        podman_sandbox.sh
#   tests/deploy/image_test.sh docker
#
# TXL_JOBS: compilers at once while the image is built. TXL_IMAGE_TARGET=cuda:
# the image with CUDA, used on the CPU. podman builds it on Debian with the CUDA
# compiler of this machine, /usr/local/cuda: 16 GB, 20 minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/../.."

engine=${1:-podman}
phase=${2:-}
target=${TXL_IMAGE_TARGET:-}
image=txl-image-test${target:+-$target}

say() { echo "image_test: $*" >&2; }
fail() { say "$*"; exit 1; }

# start [flags of run]: the container, read-only and without rights.
start() {
  "$engine" rm -f "$image" > /dev/null 2>&1 || true
  "$engine" run -d --name "$image" --read-only --cap-drop=all \
    --security-opt=no-new-privileges "$@" "$image" > /dev/null
  for _ in $(seq 300); do
    if "$engine" logs "$image" 2> /dev/null | grep -q '^listening on '; then
      address=$("$engine" port "$image" 50051 2> /dev/null | head -1 || true)
      address=${address:-127.0.0.1:50051}
      return 0
    fi
    sleep 0.1
  done
  "$engine" logs "$image" >&2
  fail "the server did not become ready"
}

stop() {
  "$engine" stop -t 35 "$image" > /dev/null
  local code
  code=$("$engine" inspect "$image" --format '{{.State.ExitCode}}')
  [ "$code" = 0 ] || fail "exit status $code after SIGTERM"
}

generate() { "$@" --prompt ROMEO: --max-tokens 40 --seed 7; }

build() {
  "$engine" build "$@" ${target:+--target "$target"} \
    --build-arg TXL_JOBS="${TXL_JOBS:-}" -t "$image" .
}

check_rights() {
  [ "$("$engine" exec "$image" id -u)" != 0 ] || fail "it runs as root"
  # Not even root may; podman puts a file system of its own over /tmp.
  if "$engine" exec --user 0:0 "$image" touch /written 2> /dev/null; then
    fail "its root can be written"
  fi
  # The health check, also as another user.
  "$engine" exec --user 12345:12345 "$image" txl status --check --timeout 3 ||
    fail "the health check fails"
}

check_text() {
  local inside outside
  inside=$(generate "$engine" exec "$image" txl generate)
  [ -n "$inside" ] || fail "nothing was generated"
  outside=$(generate build/bin/txl generate --server "$address")
  [ "$outside" = "$inside" ] ||
    fail "a client outside got another text: '$outside', not '$inside'"
}

# Streams that are longer than the drain: each ends with one Finished.
check_stop_under_load() {
  local streams=24 folder i
  folder=$(mktemp -d)
  for i in $(seq "$streams"); do
    build/bin/txl generate --server "$address" --attempts 1 --json \
      --prompt ROMEO: --seed "$i" --max-tokens 4096 --ignore-end-token \
      > "$folder/$i" 2> "$folder/$i.err" &
  done
  for i in $(seq "$streams"); do
    until grep -q '"token"' "$folder/$i"; do
      [ ! -s "$folder/$i.err" ] || fail "a stream failed: $(cat "$folder/$i.err")"
      sleep 0.05
    done
  done
  stop
  for i in $(seq "$streams"); do
    wait -n || fail "a stream failed: $(cat "$folder"/*.err)"
  done
  for i in $(seq "$streams"); do
    [ "$(grep -c '"finished"' "$folder/$i")" = 1 ] ||
      fail "stream $i has not one end"
    tail -1 "$folder/$i" | grep -q FINISH_REASON_SERVER_DRAIN ||
      fail "stream $i ended otherwise: $(tail -1 "$folder/$i")"
  done
  rm -rf "$folder"
}

# Another model, mounted; a variable.
check_mounted_model() {
  start "$@" -v "$PWD/tests/golden/kimi-char:/model:ro" -e TXL_SLOTS=3
  build/bin/txl status --server "$address" | grep -q 'of 3$' ||
    fail "the variable was not taken: $(build/bin/txl status --server "$address")"
  build/bin/txl generate --server "$address" --tokens 1,2,3 --max-tokens 5 \
    --print tokens > /dev/null || fail "the mounted model does not generate"
  stop
}

# Sessions outlive the container in a volume, which is the image's user's.
check_store() {
  local volume=$image-data session
  "$engine" volume rm -f "$volume" > /dev/null 2>&1 || true
  start "$@" -v "$volume:/data" -e TXL_DATA_DIR=/data
  session=$(build/bin/txl sessions create --server "$address" kept)
  generate build/bin/txl generate --server "$address" --session "$session" \
    > /dev/null
  "$engine" kill "$image" > /dev/null
  start "$@" -v "$volume:/data" -e TXL_DATA_DIR=/data
  build/bin/txl sessions show --server "$address" --json "$session" |
    grep -Eq '"position": *"?46' || fail "the session did not survive: $(
      build/bin/txl sessions show --server "$address" --json "$session" 2>&1)"
  stop
  "$engine" rm "$image" > /dev/null
  "$engine" volume rm "$volume" > /dev/null
}

# check [flags of run]
check() {
  start "$@" -e TXL_DRAIN_TIMEOUT=1s
  check_rights
  check_text
  check_stop_under_load
  check_store "$@"
  check_mounted_model "$@"
  "$engine" rm "$image" > /dev/null
  say "passed; bytes of the image: $("$engine" image inspect "$image" \
    --format '{{.Size}}')"
}

command -v "$engine" > /dev/null ||
  fail "$engine is missing; deploy/setup.sh --all installs podman"
if [ "$engine" != podman ]; then
  build
  check -p 127.0.0.1:0:50051
  exit
fi

# shellcheck source=tests/deploy/podman_sandbox.sh
source tests/deploy/podman_sandbox.sh
base_flags=()
case "$phase" in
  "")
    sandboxed "$0" podman build
    sandboxed --net "$0" podman check
    ;;
  build)
    make_base_image
    if [ "$target" = cuda ]; then
      make_cuda_base_image
      base_flags=(--build-arg CUDA_BUILD=localhost/debian:12-cuda
        --build-arg CUDA_RUN=localhost/debian:12-slim)
    fi
    build --pull=never --isolation chroot --format docker --layers \
      "${pip_flags[@]}" "${base_flags[@]}"
    ;;
  check)
    ip link set lo up
    check
    ;;
esac
