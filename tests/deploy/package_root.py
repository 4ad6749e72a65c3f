"""Roots of other systems, to install packages in: made by debootstrap, kept
below a folder, copied for each use. What runs in one has its files, and nothing
else of this machine but the network while something is installed."""

import os
import pathlib
import shutil
import subprocess

DEBIAN = "http://deb.debian.org/debian"
UBUNTU = "http://archive.ubuntu.com/ubuntu"
# Not only root may use /dev/null everywhere, as apt's own user would need.
APT = "-o APT::Sandbox::User=root"
QUIET = "-y -qq --no-install-recommends"


class Root:
    """A copy of a system, without a running service manager."""

    def __init__(self, system, folder):
        self.path = pathlib.Path(folder)
        subprocess.run(["cp", "-a", "--reflink=auto", f"{system}/.",
                        str(self.path)], check=True)
        self.shared = []

    def share(self, *paths):
        """Lets it read files and folders of this machine."""
        for path in paths:
            self.shared += ["--ro-bind", path, path]

    def share_pip_settings(self):
        """What pip is told on this machine, it is told there: the variables."""
        told = {name: os.environ[name]
                for name in ("PIP_CERT", "PIP_FIND_LINKS", "PIP_INDEX_URL")
                if name in os.environ}
        self.share(*(value for value in told.values() if os.path.exists(value)))
        return told

    def run(self, script, network=False, check=True, **environment):
        """A shell script as root; what it wrote to standard output."""
        values = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin",
                  "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive",
                  "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", **environment}
        command = ["bwrap", "--bind", str(self.path), "/", "--dev", "/dev",
                   "--proc", "/proc", "--unshare-pid", "--die-with-parent",
                   "--clearenv"]
        for name, value in values.items():
            command += ["--setenv", name, value]
        command += self.shared
        if network:
            command += ["--ro-bind", os.path.realpath("/etc/resolv.conf"),
                        "/etc/resolv.conf"]
        else:
            command.append("--unshare-net")
        command += ["bash", "-euo", "pipefail", "-c", script]
        done = subprocess.run(command, text=True, capture_output=True,
                              timeout=500, check=False)
        if check and done.returncode:
            raise RuntimeError(f"{script}\nexit status {done.returncode}\n"
                               f"{done.stdout}{done.stderr}")
        return done.stdout

    def files(self):
        """Every file and folder, but for what is the package manager's own."""
        own = ("var/cache", "var/lib/apt", "var/lib/dpkg", "var/log")
        found = {str(p.relative_to(self.path)) for p in self.path.rglob("*")}
        return {f for f in found if not f.startswith(own)}


def bootstrap(folder, suite, mirror):
    """The folder of a minimal system of that suite; made when it is not there.
    Debian has no key of Ubuntu's, so debootstrap takes its packages unchecked:
    a system for tests alone."""
    system = pathlib.Path(folder) / suite
    if not system.exists():
        system.parent.mkdir(parents=True, exist_ok=True)
        partial = system.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        subprocess.run(["debootstrap", "--variant=minbase", suite,
                        str(partial), mirror], check=True,
                       stdout=subprocess.DEVNULL)
        partial.rename(system)
    return system


def debian(folder, work):
    """Debian 12 with the lists of its packages."""
    root = Root(bootstrap(folder, "bookworm", DEBIAN), work)
    root.run(f"apt-get {APT} update -qq", network=True)
    return root


def ubuntu(folder, work):
    """Ubuntu 22.04 with Python 3.11 and its pip."""
    system = bootstrap(folder, "jammy", UBUNTU)
    root = Root(system, work)
    if not (system / "usr/bin/python3.11").exists():
        sources = root.path / "etc/apt/sources.list"
        sources.write_text("".join(
            f"deb {UBUNTU} {pocket} main universe\n"
            for pocket in ("jammy", "jammy-updates")), encoding="utf-8")
        root.run(f"apt-get {APT} update -qq && "
                 f"apt-get {APT} install {QUIET} python3.11-venv "
                 "ca-certificates && apt-get clean", network=True)
        shutil.rmtree(system)
        subprocess.run(["cp", "-a", "--reflink=auto", f"{root.path}/.",
                        str(system)], check=True)
    return root
