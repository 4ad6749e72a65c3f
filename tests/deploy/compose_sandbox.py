"""Runs the services of a compose file without a container engine: the same
programs with the same configuration files, users, volumes, networks, rights and
health checks, each in namespaces of its own (bubblewrap). Needs root, and to
be in network, process and mount namespaces of its own (see `enter`).

An image is a folder of programs here: what its ENTRYPOINT and ENV say."""

import dataclasses
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import sys
import time

import sandbox_network as network


@dataclasses.dataclass
class Image:
    entrypoint: list
    environment: dict = dataclasses.field(default_factory=dict)
    folders: dict = dataclasses.field(default_factory=dict)  # target: source


class Container:
    def __init__(self, service, name, environment, process, pid, log):
        self.service = service
        self.name = name
        self.environment = environment
        self.addresses = {}  # {network: address}
        self.published = []  # processes that hand ports on to it
        self.process = process
        self.pid = pid
        self.log = log
        self.started = time.monotonic()

    def output(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def execute(self, argv, check=True):
        """As docker exec."""
        uid, _, gid = self.service.user.partition(":")
        result = subprocess.run(
            ["nsenter", f"--target={self.pid}", "--mount", "--pid", "--net",
             "--ipc", "--uts", "--root", "--wd", "--", *drop_rights(uid, gid),
             "env", "-i",
             *(f"{k}={v}" for k, v in self.environment.items()), *argv],
            text=True, capture_output=True)
        if check and result.returncode != 0:
            raise RuntimeError(f"{self.name}: {' '.join(argv)}: "
                               f"{result.stdout}{result.stderr}")
        return result

    def healthy(self):
        return (self.process.poll() is None and
                self.execute(self.service.health, check=False).returncode == 0)

    def signal(self, number):
        os.kill(self.pid, number)

    def status(self):
        """Fields of /proc/PID/status."""
        text = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return dict(re.findall(r"(\w+):\s*(.*)", text))

    def root_is_read_only(self):
        mounts = pathlib.Path(f"/proc/{self.pid}/mountinfo").read_text()
        options = [line.split()[5] for line in mounts.splitlines()
                   if line.split()[4] == "/"]
        return all("ro" in o.split(",") for o in options)


def enter(argv):
    """Runs this program again in namespaces of its own; never returns."""
    os.execvp("unshare", [
        "unshare", "--mount", "--pid", "--net", "--fork", "--mount-proc",
        "--kill-child", "--propagation", "private", sys.executable, *argv])


def open_null(work):
    """A /dev/null for every user; some machines have one for root alone."""
    null = pathlib.Path(work) / "null"
    os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    null.chmod(0o666)
    network.run("mount", "--bind", null, "/dev/null")


def open_folders(paths):
    """Makes what the paths lie in; bwrap's own would be closed to others."""
    folders = {str(f) for path in paths for f in pathlib.Path(path).parents}
    return [word for folder in sorted(folders - {"/", "/usr"})
            for word in ("--perms", "0755", "--dir", folder)]


def drop_rights(uid, gid):
    return ["setpriv", f"--reuid={uid}", f"--regid={gid or uid}",
            "--clear-groups", "--no-new-privs", "--bounding-set=-all",
            "--inh-caps=-all"]


class Sandbox:
    """The project that `docker compose up` would make."""

    def __init__(self, services, networks, images, work):
        network.prepare()
        open_null(work)
        self.services = services
        self.images = images
        self.work = pathlib.Path(work)
        self.networks = {name: network.Network(name, index, work)
                         for index, name in enumerate(networks)}
        self.count = 0

    def start(self, name):
        service = self.services[name]
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                       **self.image(service).environment,
                       **service.environment}
        self.count += 1
        container = f"{name}-{self.count}"
        network.add_namespace(container)
        addresses = {
            n: self.networks[n].join(container, f"eth{i}", [name, *aliases])
            for i, (n, aliases) in enumerate(service.networks.items())}
        log = self.work / f"{container}.log"
        info_read, info_write = os.pipe()
        with log.open("w") as output:
            process = subprocess.Popen(
                network.inside(container, self.command(
                    service, container, info_write, environment)),
                stdout=output, stderr=subprocess.STDOUT,
                pass_fds=[info_write])
        os.close(info_write)
        with os.fdopen(info_read) as info:
            text = info.read()
        if not text:
            raise RuntimeError(f"{container}: {log.read_text()}")
        result = Container(service, container, environment, process,
                           json.loads(text)["child-pid"], log)
        result.addresses = addresses
        result.published = [
            network.publish(port, next(iter(addresses.values())))
            for port in service.ports]
        return result

    def image(self, service):
        return self.images[service.image.split(":")[0]]

    def command(self, service, container, info_fd, environment):
        image = self.image(service)
        uid, _, gid = service.user.partition(":")
        argv = ["bwrap", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
                "--hostname", container, "--die-with-parent", "--as-pid-1",
                "--info-fd", str(info_fd), "--clearenv", "--proc", "/proc",
                "--dev", "/dev", "--ro-bind", "/usr", "/usr",
                "--ro-bind", "/sys", "/sys",
                *open_folders(["/etc/resolv.conf", *image.folders,
                               *(v.target for v in service.volumes)]),
                "--ro-bind", self.resolver(service, container),
                "/etc/resolv.conf"]
        for folder in ("bin", "sbin", "lib", "lib64"):
            argv += ["--symlink", f"usr/{folder}", f"/{folder}"]
        for target, source in image.folders.items():
            argv += ["--ro-bind", str(source), target]
        for volume in service.volumes:
            argv += ["--ro-bind" if volume.read_only else "--bind",
                     self.volume_source(volume, uid, gid), volume.target]
        for key, value in environment.items():
            argv += ["--setenv", key, str(value)]
        if service.read_only:
            argv += ["--remount-ro", "/"]
        return [*argv, *drop_rights(uid, gid), *image.entrypoint,
                *service.command]

    def resolver(self, service, container):
        path = self.work / f"{container}.resolv.conf"
        path.write_text("".join(
            f"nameserver {self.networks[n].gateway}\n"
            for n in reversed(list(service.networks))) +
            f"options {' '.join(service.dns_options)}\n")
        return str(path)

    def volume_source(self, volume, uid, gid):
        if volume.source.startswith("/"):
            return volume.source
        folder = self.work / "volumes" / volume.source
        folder.mkdir(parents=True, exist_ok=True)
        os.chown(folder, int(uid), int(gid or uid))
        return str(folder)

    def remove(self, container):
        """What an engine does when a container's program has ended."""
        for process in container.published:
            process.terminate()
            process.wait()
        for name, address in container.addresses.items():
            self.networks[name].leave(address)

    def stop(self, container):
        """As docker compose stop; the exit status."""
        container.signal(getattr(signal, container.service.stop_signal))
        status = container.process.wait(container.service.stop_seconds)
        self.remove(container)
        return status

    def kill(self, container):
        container.signal(signal.SIGKILL)
        container.process.wait()
        self.remove(container)

    def wait_until_healthy(self, container, seconds=120):
        deadline = time.monotonic() + seconds
        while not container.healthy():
            if (container.process.poll() is not None or
                    time.monotonic() > deadline):
                raise RuntimeError(
                    f"{container.name} is not healthy: {container.output()}")
            time.sleep(0.2)
