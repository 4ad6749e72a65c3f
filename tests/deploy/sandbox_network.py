"""Networks like Docker's, in a network namespace of the test's own: a bridge
for every network of a compose file, a namespace for every container, a DNS
server for every network, and published ports."""

import itertools
import pathlib
import signal
import socket
import subprocess
import time

OUTSIDE = "outside"  # a machine that reaches the published ports and no more
HOST_ADDRESS = "203.0.113.1"


def run(*argv, **options):
    return subprocess.run([str(a) for a in argv], check=True, text=True,
                          **options)


class Network:
    """A bridge 10.77.INDEX.0/24 with names that only its members resolve."""

    def __init__(self, name, index, work):
        self.name = name
        self.bridge = f"br{index}"
        self.gateway = f"10.77.{index}.1"
        self.numbers = itertools.count(2)
        self.hosts = pathlib.Path(work) / f"hosts-{name}"
        self.entries = set()
        self.hosts.touch()
        run("ip", "link", "add", self.bridge, "type", "bridge")
        run("ip", "address", "add", f"{self.gateway}/24", "dev", self.bridge)
        run("ip", "link", "set", self.bridge, "up")
        self.dns = subprocess.Popen(
            ["dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null",
             "--no-hosts", "--no-resolv", "--user=root", "--pid-file=",
             f"--addn-hosts={self.hosts}", "--local=//", "--bind-interfaces",
             f"--listen-address={self.gateway}", "--log-facility=-"],
            stderr=subprocess.DEVNULL)
        # A signal that comes while the program is still being loaded, as it is
        # for long on a machine that has never run it, ends it.
        wait_until_open(self.dns, self.gateway, 53)

    def publish_names(self):
        self.hosts.write_text("".join(f"{address} {name}\n" for address, name
                                      in sorted(self.entries)))
        self.dns.send_signal(signal.SIGHUP)

    def hide_names(self):
        self.hosts.write_text("")
        self.dns.send_signal(signal.SIGHUP)

    def be_silent(self):
        """Questions are lost from here on: no answer, not even a refusal."""
        self.dns.send_signal(signal.SIGSTOP)

    def speak(self):
        self.dns.send_signal(signal.SIGCONT)

    def join(self, namespace, interface, names):
        address = f"10.77.{self.gateway.split('.')[2]}.{next(self.numbers)}"
        host_side = f"v{self.bridge}x{address.split('.')[3]}"
        run("ip", "link", "add", host_side, "type", "veth", "peer", "name",
            interface, "netns", namespace)
        run("ip", "link", "set", host_side, "master", self.bridge, "up")
        run("ip", "-n", namespace, "address", "add", f"{address}/24", "dev",
            interface)
        run("ip", "-n", namespace, "link", "set", interface, "up")
        self.entries |= {(address, name) for name in names}
        self.publish_names()
        return address

    def leave(self, address):
        self.entries = {e for e in self.entries if e[0] != address}
        self.publish_names()


def prepare():
    """In fresh network and mount namespaces: loopback and the outside."""
    run("ip", "link", "set", "lo", "up")
    pathlib.Path("/run/netns").mkdir(exist_ok=True)
    run("mount", "-t", "tmpfs", "tmpfs", "/run/netns")
    add_namespace(OUTSIDE)
    run("ip", "link", "add", "wan", "type", "veth", "peer", "name", "eth0",
        "netns", OUTSIDE)
    run("ip", "address", "add", f"{HOST_ADDRESS}/24", "dev", "wan")
    run("ip", "link", "set", "wan", "up")
    run("ip", "-n", OUTSIDE, "address", "add", "203.0.113.2/24", "dev", "eth0")
    run("ip", "-n", OUTSIDE, "link", "set", "eth0", "up")


def add_namespace(name):
    run("ip", "netns", "add", name)
    run("ip", "-n", name, "link", "set", "lo", "up")


def inside(namespace, argv):
    return ["nsenter", f"--net=/run/netns/{namespace}", *map(str, argv)]


def publish(port, address):
    """As Docker's proxy: the machine's port to a container's."""
    host = port.address or HOST_ADDRESS
    process = subprocess.Popen(
        ["socat", f"TCP-LISTEN:{port.published},bind={host},fork,reuseaddr,"
         "nodelay", f"TCP:{address}:{port.target},nodelay"],
        stderr=subprocess.DEVNULL)
    wait_until_open(process, host, port.published)
    return process


def wait_until_open(process, host, port):
    while not is_open(host, port):
        if process.poll() is not None:
            raise RuntimeError(f"{process.args[0]} cannot open port {port}")
        time.sleep(0.01)


def is_open(host, port):
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0
