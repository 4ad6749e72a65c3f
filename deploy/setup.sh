#!/usr/bin/env bash
# Installs what building and testing need on Debian 12 and says what it does.
# Asks for nothing; does nothing when all is there. Needs root or sudo only when
# a Debian package is missing.
#
#   deploy/setup.sh [--all] [--cuda]
#
#   --all   also what deploy/test.sh --all needs
#   --cuda  LibTorch with CUDA instead of the CPU build
#
# LibTorch and the google.rpc protos go into .deps/venv of this checkout.
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/progress.sh

torch_version=2.13.0
googleapis_version=1.76.0
torch_cpu_index=https://download.pytorch.org/whl/cpu
venv=.deps/venv

packages=(
  g++ cmake ninja-build ccache git pkg-config python3 python3-venv
  libgrpc++-dev libprotobuf-dev libprotoc-dev protobuf-compiler
  protobuf-compiler-grpc
  libabsl-dev libgtest-dev libgmock-dev nlohmann-json3-dev libcli11-dev
  libtomlplusplus-dev librandom123-dev libutf8proc-dev libedit-dev libssl-dev
  zlib1g-dev libisal-dev libpcre2-dev
  libhwy-dev libbenchmark-dev libsqlite3-dev libhiredis-dev redis-server
  liblua5.1-0-dev
  prometheus-cpp-dev python3-yaml curl
)
# Debian 12 has two; elsewhere there is one.
if grep -qs '^VERSION_ID="12"' /etc/os-release; then
  packages+=(libboost1.81-dev)
else
  packages+=(libboost-dev)
fi
torch_wheel="torch==${torch_version}+cpu"
torch_size="200 MB, unpacked 0.8 GB"
all=0
cuda=0
for argument in "$@"; do
  case "$argument" in
    --all) all=1 ;;
    # To "==", 2.13.0+cpu is as good as 2.13.0, and may lie nearer.
    --cuda)
      cuda=1
      torch_wheel="torch===${torch_version}"
      torch_size="with CUDA's libraries some 3 GB, unpacked 6 GB"
      ;;
    -h | --help) sed -n '2,11p' "$0"; exit 0 ;;
    *) echo "setup.sh: unknown argument: $argument" >&2; exit 2 ;;
  esac
done
if [ "$all" = 1 ]; then
  packages+=(clang clang-format clang-tidy libclang-rt-dev npm
    podman crun debootstrap dpkg-dev
    haproxy prometheus dnsmasq-base bubblewrap iproute2 socat wget openssl
    strace systemd openjdk-17-jdk-headless apache2-utils)
fi

say() { echo "setup: $*" >&2; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Debian starts a service when it is installed, and at every boot; the tests
# start their own.
forbid_starts() {
  local policy=/usr/sbin/policy-rc.d
  [ ! -e "$policy" ] || return 0
  trap 'as_root rm -f /usr/sbin/policy-rc.d' EXIT
  printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" > /dev/null
  as_root chmod 755 "$policy"
}

missing=()
for package in "${packages[@]}"; do
  # A tool that is there by other means (a newer CMake, say) is fine too.
  case "$package" in
    cmake | g++ | git | python3 | npm | clang)
      command -v "$package" > /dev/null && continue ;;
    ninja-build) command -v ninja > /dev/null && continue ;;
    python3-venv)
      python3 -c 'import ensurepip, venv' 2> /dev/null && continue ;;
  esac
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2> /dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
if [ "${#missing[@]}" -gt 0 ]; then
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  services=()
  for package in "${missing[@]}"; do
    case "$package" in
      haproxy | prometheus | redis-server) services+=("$package") ;;
    esac
  done
  [ "${#services[@]}" = 0 ] || forbid_starts
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}" 2>&1 |
    grep --line-buffered -E '^(E:|Need to get|Get:|Unpacking|Setting up)' |
    cut -c1-100 | thinned 40 >&2
  # Images have none that would start them.
  if [ "${#services[@]}" != 0 ] && command -v systemctl > /dev/null; then
    as_root systemctl disable -q "${services[@]}"
  fi
fi

if [ ! -x "$venv/bin/pip" ]; then
  say "making $venv"
  python3 -m venv "$venv"
fi

site_packages() { echo "$venv"/lib/python3*/site-packages; }

# Not bin/pip: in a copied checkout that is the other checkout's.
venv_pip() { "$venv/bin/python" -m pip "$@"; }

# pip_install REQUIREMENT [INDEX]: from pip's own configuration first.
pip_install() {
  venv_pip install --quiet --no-deps "$1" 2> .deps/pip.log && return 0
  if [ $# -gt 1 ]; then
    venv_pip install --quiet --no-deps --index-url "$2" "$1" && return 0
  fi
  cat .deps/pip.log >&2
  return 1
}

# pip_install_all REQUIREMENT...: with what they need. What pip says of torch's
# own needs, which the C++ libraries have not, is told where it fails alone.
pip_install_all() {
  venv_pip install --quiet "$@" 2> .deps/pip.log && return 0
  cat .deps/pip.log >&2
  return 1
}

if [ ! -d "$(site_packages)/torch-${torch_wheel##*=}.dist-info" ]; then
  say "downloading and unpacking LibTorch: $torch_wheel ($torch_size)"
  if [ "$cuda" = 1 ]; then
    # With CUDA's libraries, which its package names.
    venv_pip uninstall --quiet --yes torch 2> /dev/null || true
    venv_pip install --quiet "$torch_wheel"
  else
    pip_install "$torch_wheel" "$torch_cpu_index"
  fi
fi
if [ ! -f "$(site_packages)/google/rpc/error_details.proto" ]; then
  say "installing the google.rpc protos"
  pip_install "googleapis-common-protos==$googleapis_version"
fi
for package in hpack==4.2.0 protobuf==7.36.2 lizard==1.24.3 pathspec==1.1.1 \
    pygments==2.21.0 packaging==26.4 mido==1.3.3; do
  if [ ! -d "$(site_packages)/${package/==/-}.dist-info" ]; then
    say "installing Python's $package for the tests"
    pip_install "$package"
  fi
done
if ! "$venv/bin/python" -c 'import grpc, grpc_reflection' 2> /dev/null; then
  say "installing Python's grpcio for clients that are not our own"
  pip_install_all grpcio grpcio-reflection protobuf
fi
if [ "$all" = 1 ]; then
  if ! "$venv/bin/python" -c 'import matplotlib' 2> /dev/null; then
    say "installing Python's matplotlib for the pictures of benchmarks"
    pip_install_all matplotlib
  fi
  if ! "$venv/bin/python" -c 'import opentelemetry.proto' 2> /dev/null; then
    say "installing Python's opentelemetry-proto for the test of spans"
    pip_install opentelemetry-proto==1.45.2
  fi
  if ! "$venv/bin/python" -c 'import kubernetes_validate' 2> /dev/null; then
    say "installing Python's kubernetes-validate for the manifests' schemas"
    pip_install_all kubernetes-validate
  fi
fi
