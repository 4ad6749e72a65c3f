#!/bin/sh
# Tests the page: its pure parts in Node, then all of it in Chromium.
#
# Installs playwright-core and axe-core by npm into a temporary folder, and
# Chromium by apt where there is none (as root). TXL_HTTP names a server
# ("http://127.0.0.1:8080/") for page_test and page_parts_test; without it a
# mock server answers. PAGE_TOOLS keeps the folder with the tools, PAGE_SHOTS
# takes the pictures. Unset TXL_HTTP where a server is started: to it, TXL_ names
# are its own settings.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
node --test "$here"/*.test.mjs

if [ -z "${PAGE_TOOLS:-}" ]; then
  PAGE_TOOLS=$(mktemp -d)
  trap 'rm -rf "$PAGE_TOOLS"' EXIT
fi
export PAGE_TOOLS
if [ ! -d "$PAGE_TOOLS/node_modules/axe-core" ]; then
  npm install --prefix "$PAGE_TOOLS" --no-audit --no-fund --silent \
    playwright-core@1.65.1 axe-core@4.14
fi
if ! command -v chromium > /dev/null; then
  apt-get update -qq
  apt-get install -qq -y --no-install-recommends chromium > /dev/null
fi
CHROMIUM=$(command -v chromium)
export CHROMIUM

# One file after the other: each has a browser of its own.
for file in page_test page_parts_test page_mock_test page_midi_test page_order_test; do
  node --test "$here/$file.mjs"
done
