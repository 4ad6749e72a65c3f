# shellcheck shell=bash
# For scripts that use podman where there may be no registry, no systemd and no
# right to change limits or control groups. Sourced from the repository's root,
# as root. All that podman stores lies in .deps/image (about 6 GB) and stays
# there, so that a second build is short; the machine's own containers and
# settings are not touched.

sandbox=$PWD/.deps/image
debian_sources=/etc/apt/sources.list.d/debian.sources

mkdir -p "$sandbox/tmp"
export TMPDIR=$sandbox/tmp  # also of the build's ccache
export CONTAINERS_STORAGE_CONF=$sandbox/storage.conf
export CONTAINERS_CONF=$sandbox/containers.conf
cat > "$CONTAINERS_STORAGE_CONF" << END
[storage]
driver = "overlay"
graphroot = "$sandbox/storage"
runroot = "$sandbox/run"
END
cat > "$CONTAINERS_CONF" << END
[containers]
cgroups = "disabled"
netns = "host"
default_ulimits = ["nofile=$(ulimit -Hn):$(ulimit -Hn)", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "crun"
END

# What pip is told on this machine, it is told in a build.
pip_flags=()
if [ -f "${PIP_CERT:-}" ]; then
  pip_flags+=(--volume "$PIP_CERT:/run/pip.crt:ro"
    --build-arg PIP_CERT=/run/pip.crt)
fi
if [ -d "${PIP_FIND_LINKS:-}" ]; then
  pip_flags+=(--volume "$PIP_FIND_LINKS:/run/wheels:ro"
    --build-arg PIP_FIND_LINKS=/run/wheels)
fi

# sandboxed [--net] COMMAND ...: in mount and process namespaces of its own,
# with --net also without any network but a loopback of its own. What the
# command starts ends with it.
sandboxed() {
  # shellcheck disable=SC2016  # the inner shell's
  unshare --mount --pid --fork --mount-proc --kill-child \
    --propagation private "$([ "$1" = --net ] && echo --net || echo --)" \
    bash -c '
      set -e
      [ "$1" != --net ] || shift
      # crun refuses controllers in a second hierarchy.
      ! mountpoint -q /sys/fs/cgroup/unified || umount /sys/fs/cgroup/unified
      # crun hands /dev/null over to the user of a container that reads it, and
      # builds need one that is open to all users.
      rm -f "$TMPDIR/null"
      mknod -m 666 "$TMPDIR/null" c 1 3
      mount --bind "$TMPDIR/null" /dev/null
      exec "$@"' sandboxed "$@"
}

# debian:12 and debian:12-slim by debootstrap.
make_base_image() {
  local root=$sandbox/rootfs mirror
  if podman image exists localhost/debian:12; then return 0; fi
  mirror=$(sed -n 's/^URIs: *//p' "$debian_sources" | head -1)
  rm -rf "$root"
  debootstrap --variant=minbase bookworm "$root" "$mirror" > "$sandbox/log" ||
    { tail "$sandbox/log" >&2; return 1; }
  : > "$root/etc/apt/sources.list"
  cp "$debian_sources" "$root/etc/apt/sources.list.d/"
  : > "$root/etc/resolv.conf"
  # As in the official image: neither packages nor caches stay in a layer.
  cat > "$root/etc/apt/apt.conf.d/docker-clean" << 'END'
DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb || true"; };
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
END
  rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* \
    "$root"/usr/share/{doc,man,info,locale}/*
  tar -C "$root" -c . |
    podman import -q --change 'CMD ["bash"]' - localhost/debian:12 > /dev/null
  podman tag localhost/debian:12 localhost/debian:12-slim
  rm -rf "$root"
}

# debian:12-cuda: debian:12 with the CUDA compiler of this machine.
make_cuda_base_image() {
  if podman image exists localhost/debian:12-cuda; then return 0; fi
  podman build -q --pull=never --isolation chroot --format docker \
    -t localhost/debian:12-cuda -f - /usr/local/cuda/ > /dev/null << 'END'
FROM localhost/debian:12
COPY . /usr/local/cuda
ENV PATH=/usr/local/cuda/bin:$PATH
END
}
