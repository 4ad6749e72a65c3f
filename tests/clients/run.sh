#!/usr/bin/env bash
# Clients of OpenAI's API, unmodified, against a real server: each in its newest
# version, from the package index that pip is configured with, in an environment
# of its own that goes afterwards.
#
#   tests/clients/run.sh [--server PATH] [openai|lm_eval|aiperf|ray]...
#
# PATH: txl-server, with txl and txl-model beside it. A client that cannot be
# installed is a failure.
set -euo pipefail

server=$(dirname "$0")/../../build/bin/txl-server
if [ "${1:-}" = --server ]; then
  server=$2
  shift 2
fi
TXL_SERVER=$(realpath -e "$server")
export TXL_SERVER
cd "$(dirname "$0")"
# What the machine is configured with would go before the server of a test.
unset OPENAI_API_KEY OPENAI_BASE_URL OPENAI_ORG_ID OPENAI_PROJECT_ID
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=()

# try NAME PACKAGES TESTS
try() {
  printf '\n== %s\n' "$1"
  python3 -m venv "$folder/$1"
  # shellcheck disable=SC2086  # several words
  if ! timeout 600 "$folder/$1/bin/pip" install --quiet $2 \
      2> "$folder/log"; then
    tail -5 "$folder/log"
    echo "$1: not installed"
    failed+=("$1")
    return
  fi
  "$folder/$1/bin/pip" list 2> /dev/null |
    grep -E '^(openai|langchain-openai|lm_eval|aiperf|ray) '
  # shellcheck disable=SC2086
  timeout 900 "$folder/$1/bin/python" -B -W ignore -m unittest $3 ||
    failed+=("$1")
  rm -rf "${folder:?}/$1"
}

[ $# -gt 0 ] || set -- openai lm_eval aiperf ray
for client in "$@"; do
  case $client in
    openai)
      try openai "openai langchain-openai" "curl_test forms_test openai_test
        openai_async_test openai_chat_test openai_errors_test openai_sessions_test
        langchain_test" ;;
    lm_eval) try lm_eval "lm-eval[api]" lm_eval_test ;;
    aiperf) try aiperf aiperf aiperf_test ;;
    ray) try ray "ray[data] pydantic aiohttp" ray_test ;;
    *) echo "there is no client $client" >&2; exit 2 ;;
  esac
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}"; exit 1; }
printf '\nall clients passed\n'
