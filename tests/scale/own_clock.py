"""The wall clock of one program, which is set while the program runs."""

import mmap
import struct

_FORMAT = struct.Struct("qq")  # nanoseconds ahead, readings


class OwnClock:
    """`library`: of moved_clock.cc. A program that is started with
    `environment` reads this clock; others, and its monotonic clock, are as
    they are."""

    def __init__(self, library, file):
        file.write_bytes(bytes(_FORMAT.size))
        with file.open("r+b") as opened:
            self._shared = mmap.mmap(opened.fileno(), _FORMAT.size)
        self.environment = {"LD_PRELOAD": str(library.resolve()),
                            "MOVED_CLOCK_FILE": str(file)}

    def jump(self, seconds):
        """Ahead, or back."""
        ahead = _FORMAT.unpack(self._shared)[0] + round(seconds * 1e9)
        # One store: the program reads the eight bytes at once.
        self._shared[:8] = struct.pack("q", ahead)

    def readings(self):
        """How often the program has read it."""
        return _FORMAT.unpack(self._shared)[1]
