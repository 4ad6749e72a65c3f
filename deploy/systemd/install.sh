#!/usr/bin/env bash
# Puts the programs of this checkout's build, LibTorch's libraries, the shipped
# model and the service into place, and starts nothing. A file
# /etc/txl/txl-server.env that is there stays as it is.
#
#   deploy/systemd/install.sh [--root DIR] [--programs DIR]
#
#   --root      install below DIR instead of /
#   --programs  folder of txl-server, txl and txl-model (default: build/bin)
set -euo pipefail
cd "$(dirname "$0")/../.."

root=
programs=build/bin
while [ $# -gt 0 ]; do
  case "$1" in
    --root) root=${2:?--root needs a folder}; shift 2 ;;
    --programs) programs=${2:?--programs needs a folder}; shift 2 ;;
    -h | --help) sed -n '2,9p' "$0"; exit 0 ;;
    *) echo "install.sh: unknown argument: $1" >&2; exit 2 ;;
  esac
done
for program in txl-server txl txl-model; do
  [ -x "$programs/$program" ] ||
    { echo "install.sh: $programs/$program is missing: build first" >&2
      exit 1; }
done
torch=$(echo .deps/venv/lib/python3*/site-packages/torch/lib)

prefix=$root/opt/txl
install -d "$prefix/bin" "$prefix/lib" "$prefix/model" "$prefix/share"
install -m 755 "$programs"/{txl-server,txl,txl-model} "$prefix/bin/"
install -m 644 "$torch"/{libtorch.so,libtorch_cpu.so,libc10.so} \
  "$torch"/libgomp.so.1 "$prefix/lib/"
install -m 644 models/shakespeare/* "$prefix/model/"
install -m 644 docs/deploying.md docs/security.md deploy/systemd/{tls,gpu}.conf \
  "$prefix/share/"
install -d "$root/etc/txl" "$root/etc/systemd/system"
[ -e "$root/etc/txl/txl-server.env" ] ||
  install -m 644 deploy/systemd/txl-server.env "$root/etc/txl/"
install -m 644 deploy/systemd/txl-server.service "$root/etc/systemd/system/"
# The same for several servers of one machine, each with folders of its own and
# settings beside the common ones.
sed -e 's#^\(State\|Runtime\)Directory=txl-server$#&/%i#' \
  -e 's#^EnvironmentFile=.*#&\nEnvironmentFile=/etc/txl/txl-server-%i.env#' \
  -e 's#^Description=.*#& (%i)#' deploy/systemd/txl-server.service \
  > "$root/etc/systemd/system/txl-server@.service"
echo "installed; next: edit $root/etc/txl/txl-server.env, then" >&2
echo "systemctl daemon-reload && systemctl enable --now txl-server" >&2
