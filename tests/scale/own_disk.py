"""File systems of this process and its children alone, which can be full."""

import ctypes
import errno
import os
import pathlib
import time

_NEWNS, _NEWUSER = 0x00020000, 0x10000000
_PRIVATE = 1 << 18 | 1 << 14  # MS_PRIVATE, MS_REC
_REMOUNT = 1 << 5
_DETACH = 2
_ROOM = 1 << 30  # bytes; memory is taken for what is written
_libc = ctypes.CDLL(None, use_errno=True)


def own_mounts():
    """From here on what is mounted is seen by this process and its children,
    and goes with them. Before any thread; as root, or where users may have
    namespaces: else OSError."""
    user, group = os.getuid(), os.getgid()
    if _libc.unshare(_NEWNS) != 0:
        _check("unshare", _libc.unshare(_NEWUSER | _NEWNS))
        for name, text in (("uid_map", f"{user} {user} 1"),
                           ("setgroups", "deny"),
                           ("gid_map", f"{group} {group} 1")):
            pathlib.Path(f"/proc/self/{name}").write_text(text)
    _check("mount", _libc.mount(b"none", b"/", None, _PRIVATE, None))


def _check(what, result):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


class Disk:
    """A file system on an empty `folder`. After own_mounts()."""

    def __init__(self, folder):
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._mount(0, _ROOM)

    def fill(self):
        """It holds what it holds, and nothing more, until free()."""
        while True:
            used = os.statvfs(self._folder)
            try:
                self._mount(_REMOUNT, max(
                    (used.f_blocks - used.f_bfree) * used.f_frsize,
                    used.f_frsize))
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                time.sleep(0.001)  # it holds more by now
                continue
            if self._is_full():
                return

    def free(self):
        self._mount(_REMOUNT, _ROOM)

    def close(self):
        """It is gone, with what it held."""
        _check("umount", _libc.umount2(str(self._folder).encode(), _DETACH))

    def _is_full(self):
        tried = self._folder / "full"
        try:
            tried.write_bytes(bytes(1 << 16))
        except OSError as error:
            return error.errno == errno.ENOSPC
        finally:
            tried.unlink(missing_ok=True)
        return False

    def _mount(self, flags, size):
        _check("mount", _libc.mount(
            b"none", str(self._folder).encode(), b"tmpfs", flags,
            f"size={size}".encode()))
