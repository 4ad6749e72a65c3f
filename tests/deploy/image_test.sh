#!/usr/bin/env bash
# Builds the Dockerfile's image from this checkout and uses it as its users do:
# a read-only container, not as root, generates text, for a client outside of it
# too, and ends well on SIGTERM. Needs build/bin/txl, the client outside.
#
#   tests/deploy/image_test.sh           with podman, as root; no engine, registry
#                                        or container settings are needed, see
#                                        podman_sandbox.sh
#   tests/deploy/image_test.sh docker
#
# TXL_JOBS: compilers at once while the image is built.
set -euo pipefail
cd "$(dirname "$0")/../.."

engine=${1:-podman}
phase=${2:-}
image=txl-image-test

say() { echo "image_test: $*" >&2; }
fail() { say "$*"; exit 1; }

wait_until_ready() {
  for _ in $(seq 300); do
    if "$engine" logs "$image" 2> /dev/null | grep -q '^listening on '; then
      return 0
    fi
    sleep 0.1
  done
  "$engine" logs "$image" >&2
  fail "the server did not become ready"
}

generate() { "$@" --prompt ROMEO: --max-tokens 40 --seed 7; }

build() {
  "$engine" build "$@" --build-arg TXL_JOBS="${TXL_JOBS:-}" -t "$image" .
}

check() {
  "$engine" rm -f "$image" > /dev/null 2>&1 || true
  "$engine" run -d --name "$image" --read-only --cap-drop=all \
    --security-opt=no-new-privileges "$@" "$image" > /dev/null
  wait_until_ready

  [ "$("$engine" exec "$image" id -u)" != 0 ] || fail "it runs as root"
  if "$engine" exec "$image" touch /tmp/x 2> /dev/null; then
    fail "it wrote a file"
  fi
  # As deploy/compose and deploy/kubernetes run it.
  "$engine" exec --user 10001:10001 "$image" txl status --check ||
    fail "its health check does not work as another user"

  local inside outside address
  inside=$(generate "$engine" exec "$image" txl generate)
  [ -n "$inside" ] || fail "nothing was generated"
  address=$("$engine" port "$image" 50051 2> /dev/null | head -1 || true)
  outside=$(generate build/bin/txl generate \
    --server "${address:-127.0.0.1:50051}")
  [ "$outside" = "$inside" ] ||
    fail "a client outside got another text: '$outside', not '$inside'"

  "$engine" stop -t 20 "$image" > /dev/null
  local code
  code=$("$engine" inspect "$image" --format '{{.State.ExitCode}}')
  [ "$code" = 0 ] || fail "exit status $code after SIGTERM"
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
case "$phase" in
  "")
    sandboxed "$0" podman build
    sandboxed --net "$0" podman check
    ;;
  build)
    make_base_image
    build --pull=never --isolation chroot --format docker --layers \
      "${pip_flags[@]}"
    ;;
  check)
    ip link set lo up
    check
    ;;
esac
