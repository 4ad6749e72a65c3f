#!/usr/bin/env python3
"""The systemd unit: systemd accepts it, it is hardened, and what it forbids is
nothing that the server does. Needs systemd's programs (no running systemd) and
strace, and txl-server, txl and txl-model.

  systemd_test.py [--programs build/bin]"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "build/bin"
# Of systemd-analyze security: 0 is safe, 10 is not; a service without any
# setting has more than 9.
EXPOSURE_LIMIT = 1.2


def run(*argv, check=True, **options):
    return subprocess.run([str(a) for a in argv], check=check, text=True,
                          capture_output=True, **options)


def settings(text):
    """{name: [values]} of a unit."""
    found = {}
    for line in text.splitlines():
        if match := re.match(r"(\w+)=(.*)", line):
            found.setdefault(match[1], []).append(match[2])
    return found


def syscall_set(names):
    """Every system call of systemd's sets (@NAME) and plain names."""
    calls = set()
    for name in names:
        if not name.startswith("@"):
            calls.add(name)
            continue
        lines = run("systemd-analyze", "syscall-filter", name).stdout
        calls |= syscall_set(
            word for line in lines.splitlines()[1:]
            if (word := line.strip()) and not word.startswith("#"))
    return calls


def allowed_calls(unit):
    allowed = syscall_set(["@default"])
    for value in unit["SystemCallFilter"]:
        if value.startswith("~"):
            allowed -= syscall_set(value[1:].split())
        else:
            allowed |= syscall_set(value.split())
    return allowed | syscall_set(["@default"])


class Installed:
    """What install.sh makes below a folder, and one life of its server under
    strace: configuration check, start, a turn, a drain."""

    def __init__(self, folder):
        self.root = pathlib.Path(folder)
        run(ROOT / "deploy/systemd/install.sh", "--root", self.root,
            "--programs", PROGRAMS)
        self.server = self.root / "opt/txl/bin/txl-server"
        self.state = self.root / "state"
        self.unit_text = (self.root / "etc/systemd/system/txl-server.service"
                          ).read_text(encoding="utf-8").replace(
                              "/opt/txl/bin/", f"{self.server.parent}/")

    def environment(self):
        lines = (self.root / "etc/txl/txl-server.env").read_text("utf-8")
        return {**dict(re.findall(r"^(\w+)=(.*)", lines, re.MULTILINE)),
                "TXL_MODEL": str(self.root / "opt/txl/model"),
                "TXL_LISTEN": "127.0.0.1:0",
                "TXL_HTTP_LISTEN": "127.0.0.1:0",
                "TXL_METRICS_LISTEN": "127.0.0.1:0",
                "TXL_DATA_DIR": str(self.state),
                "TXL_ADMIN_LISTEN": f"unix:{self.state}/admin.sock",
                "LD_LIBRARY_PATH": str(self.root / "opt/txl/lib"),
                "OMP_NUM_THREADS": "1"}

    def strace(self, out):
        """As a user without rights, as the service: SQLite does more for
        root."""
        if os.geteuid() != 0:
            return ["strace", "-f", "-o", out]
        self.root.chmod(0o755)
        self.state.mkdir(exist_ok=True)
        shutil.chown(self.state, "nobody")
        return ["strace", "-f", "-u", "nobody", "-o", out]

    def trace(self):
        out = self.root / "trace"
        run(*self.strace(out), self.server, "--check-config",
            env=self.environment())
        first = out.read_text(errors="replace")
        with subprocess.Popen(
                [*self.strace(out), self.server],
                env=self.environment(), stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True) as process:
            address = next(line.split()[-1] for line in process.stdout
                           if line.startswith("listening on "))
            run(PROGRAMS / "txl", "generate", "--server", address, "--prompt",
                "A", "--max-tokens", 20, "--timeout", 60)
            server_pid = int(out.read_text(errors="replace").split()[0])
            os.kill(server_pid, signal.SIGTERM)
            assert process.wait(60) == 0, "the server did not drain"
        return first + out.read_text(errors="replace")


class Unit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.installed = Installed(cls.folder.name)
        cls.unit = settings(cls.installed.unit_text)
        cls.traced = cls.installed.trace()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def write(self, text):
        path = self.installed.root / "txl-server.service"
        path.write_text(text, encoding="utf-8")
        return path

    def verify(self, text):
        result = run("systemd-analyze", "verify", self.write(text),
                     check=False)
        return result.returncode, result.stdout + result.stderr

    def exposure(self, text):
        output = run("systemd-analyze", "security", "--offline=true",
                     "--no-pager", self.write(text), check=False).stdout
        return float(re.search(r"exposure level for \S+: ([\d.]+)",
                               output)[1])

    def test_systemd_accepts_it_and_a_misspelt_setting_is_seen(self):
        text = self.installed.unit_text
        self.assertEqual(self.verify(text), (0, ""))
        _, output = self.verify(text.replace("ProtectHome", "ProtectHomes"))
        self.assertIn("ProtectHomes", output)

    def test_little_is_exposed(self):
        text = self.installed.unit_text
        self.assertLessEqual(self.exposure(text), EXPOSURE_LIMIT)
        for setting in ("DynamicUser=yes", "SystemCallFilter=@system-service",
                        "IPAddressDeny=any"):
            self.assertIn(f"\n{setting}\n", text)
        hardening = text.index("# Where sessions are kept")
        self.assertGreater(self.exposure(text[:hardening]), 9)

    def test_the_server_makes_no_system_call_that_is_forbidden(self):
        made = set(re.findall(r"^\d+ +([a-z_0-9]+)\(", self.traced,
                              re.MULTILINE))
        self.assertGreater(len(made), 40)
        self.assertEqual(made - allowed_calls(self.unit), set())
        self.assertNotIn("ptrace", allowed_calls(self.unit))
        self.assertNotIn("mount", allowed_calls(self.unit))

    def test_it_maps_no_memory_that_it_can_both_write_and_execute(self):
        self.assertEqual(self.unit["MemoryDenyWriteExecute"], ["yes"])
        self.assertIn("PROT_EXEC", self.traced)  # libraries
        for line in self.traced.splitlines():
            if "PROT_EXEC" in line:
                self.assertIn(" mmap(", line)
                self.assertNotIn("PROT_WRITE", line)

    def test_it_writes_into_its_own_folders_alone(self):
        self.assertEqual(self.unit["ProtectSystem"], ["strict"])
        self.assertEqual(self.unit["StateDirectoryMode"], ["0700"])
        shipped = (ROOT / "deploy/systemd/txl-server.env").read_text("utf-8")
        folder, = self.unit["StateDirectory"]
        self.assertIn(f"\nTXL_DATA_DIR=/var/lib/{folder}\n", shipped)
        folder, = self.unit["RuntimeDirectory"]
        self.assertEqual(self.unit["RuntimeDirectoryMode"], ["0700"])
        self.assertIn(f"\nTXL_ADMIN_LISTEN=unix:/run/{folder}/", shipped)
        opened = re.findall(r'open(?:at)?\([^"]*"([^"]+)", ([A-Z_|]+)',
                            self.traced)
        self.assertGreater(len(opened), 20)
        written = [path for path, mode in opened
                   if re.search("O_WRONLY|O_RDWR|O_CREAT", mode)]
        self.assertTrue(written)
        self.assertEqual([path for path in written if not path.startswith(
            f"{self.installed.state}/")], [])

    def test_it_may_read_what_it_reads_of_proc(self):
        read = set(re.findall(r'"/proc/([a-z]+)', self.traced)) - {"self"}
        if read:
            self.assertNotIn("ProcSubset", self.unit)

    def test_it_uses_the_address_families_that_it_may(self):
        families = set(re.findall(r"socket\((AF_\w+)", self.traced))
        self.assertTrue(families)
        self.assertLessEqual(
            families, set(self.unit["RestrictAddressFamilies"][0].split()))

    def test_with_its_drop_in_it_has_the_files_of_tls(self):
        drop_in = (self.installed.root / "opt/txl/share/tls.conf").read_text(
            "utf-8")
        given = dict(re.findall(r"^LoadCredential=(\S+):(\S+)$", drop_in,
                                re.MULTILINE))
        self.assertEqual(set(given), {"tls.crt", "tls.key", "ca.crt"})
        named = dict(re.findall(r"(TXL_TLS_\w+)=%d/(\S+)", drop_in))
        self.assertEqual(named, {"TXL_TLS_CERT": "tls.crt",
                                 "TXL_TLS_KEY": "tls.key",
                                 "TXL_TLS_CLIENT_CA": "ca.crt"})
        settings_of_both = self.installed.unit_text.replace(
            "[Service]\n", drop_in[drop_in.index("[Service]"):], 1)
        self.assertEqual(self.verify(settings_of_both), (0, ""))

    def test_each_gpu_of_a_machine_has_a_server_of_its_own(self):
        folder = self.installed.root / "etc/systemd/system"
        text = (folder / "txl-server@.service").read_text("utf-8").replace(
            "/opt/txl/bin/", f"{self.installed.server.parent}/")
        unit = settings(text)
        for name in ("StateDirectory", "RuntimeDirectory"):
            self.assertEqual(unit[name], ["txl-server/%i"])
        self.assertEqual(unit["EnvironmentFile"], [
            "/etc/txl/txl-server.env", "/etc/txl/txl-server-%i.env"])
        drop_in = (self.installed.root / "opt/txl/share/gpu.conf").read_text(
            "utf-8")
        self.assertIn("CUDA_VISIBLE_DEVICES=%i", drop_in)
        path = self.installed.root / "txl-server@0.service"
        path.write_text(text + drop_in[drop_in.index("[Service]"):], "utf-8")
        result = run("systemd-analyze", "verify", path, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_a_stop_waits_for_the_drain(self):
        drain = self.installed.environment()["TXL_DRAIN_TIMEOUT"]
        self.assertGreater(float(self.unit["TimeoutStopSec"][0].rstrip("s")),
                           float(drain.rstrip("s")) + 2)

    def test_installing_again_keeps_the_settings(self):
        settings_file = self.installed.root / "etc/txl/txl-server.env"
        before = settings_file.read_text("utf-8")
        settings_file.write_text(before + "TXL_SLOTS=3\n", encoding="utf-8")
        try:
            run(ROOT / "deploy/systemd/install.sh", "--root",
                self.installed.root, "--programs", PROGRAMS)
            self.assertIn("TXL_SLOTS=3", settings_file.read_text("utf-8"))
        finally:
            settings_file.write_text(before, encoding="utf-8")


def main():
    global PROGRAMS
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--programs", type=pathlib.Path, default=PROGRAMS)
    arguments, rest = parser.parse_known_args()
    PROGRAMS = arguments.programs.resolve()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
