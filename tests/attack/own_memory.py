"""Memory of a process's own, from the text of /proc/PID/status.

Pages of files (the program, libraries, weights that are mapped) come and go as
the kernel likes and are not counted; pages that were swapped out are.
All figures are bytes.
"""


def parse(text):
    """Every field that is a size."""
    fields = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        words = value.split()
        if len(words) == 2 and words[1] == "kB":
            fields[name] = int(words[0]) * 1024
    return fields


def own(status):
    return status["RssAnon"] + status["VmSwap"]


def _files(status):
    return status["RssFile"] + status["RssShmem"]


def growth(before, now):
    """The peak of its own memory since `before` over what it was then.

    Both are of `parse`; `before` was read when the peak (VmHWM) began anew.
    That peak is of files, too: as many are taken off as there were at most, so
    that none of them counts.
    """
    files = max(_files(before), _files(now))
    return max(own(now), now["VmHWM"] - files) - own(before)
