#!/usr/bin/env python3
"""The packages that deploy/package.sh has made: what is in them, and that each
is installed and used on an empty system, the Debian package on Debian 12, the
wheel on Ubuntu 22.04, which has the oldest C library that it names. As root,
with debootstrap, bubblewrap and a network. The systems are made once, in
--roots, about 1 GB; each installation works on a copy.

  package_test.py [--build build] [--roots build/roots] [TEST...]"""

import argparse
import email
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

import package_root

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
ROOTS = None
PROGRAMS = ["txl", "txl-model", "txl-server"]
MODEL = sorted(p.name for p in (ROOT / "models/shakespeare").iterdir())
TOKENS = 40
SIZE_LIMITS = {"deb": 150e6, "whl": 30e6}

# A server and a client of it, without any network but their own.
USE = f"""
cd /
txl-server --model shakespeare --listen 127.0.0.1:0 > /tmp/out 2> /tmp/log &
server=$!
until grep -q '^listening on ' /tmp/out; do
  kill -0 $server || {{ cat /tmp/log >&2; exit 1; }}
  sleep 0.05
done
address=$(sed -n 's/^listening on //p' /tmp/out)
printf ROMEO: | txl generate --server $address --prompt - --seed 7 \
  --max-tokens {TOKENS} --ignore-end-token --json
kill -TERM $server
wait $server
txl-model inspect "$MODEL" > /dev/null
"""


def output(*argv, **options):
    return subprocess.run([str(a) for a in argv], check=True, text=True,
                          stdout=subprocess.PIPE, **options).stdout


def package(ending):
    found = list((BUILD / "packages").glob(f"*.{ending}"))
    assert len(found) == 1, f"{found}: deploy/package.sh makes one"
    return found[0]


def search_paths(program):
    """Folders in which a program looks for libraries before the system's."""
    found = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]",
                       output("readelf", "-d", program))
    return [path for paths in found for path in paths.split(":")]


def needed(program):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", program))


def streamed(lines):
    """Ids and log-probabilities of `txl generate --json`, one message each."""
    tokens = [json.loads(line).get("token") for line in lines.splitlines()]
    return [(t["tokenId"], t["logprob"]) for t in tokens if t]


def built_stream():
    """Of the programs of the build, which the packages' have to equal to the
    bit: what they compute depends on the processor alone."""
    with tempfile.TemporaryDirectory() as work:
        script = USE.replace("/tmp/", f"{work}/").replace(
            "--model shakespeare", f"--model {ROOT}/models/shakespeare")
        return streamed(output("bash", "-euc", script, env={
            **os.environ, "MODEL": str(ROOT / "models/shakespeare"),
            "PATH": f"{BUILD}/bin:{os.environ['PATH']}"}))


class Case(unittest.TestCase):
    def folder(self):
        made = tempfile.TemporaryDirectory(dir=ROOTS)
        self.addCleanup(made.cleanup)
        return made.name

    def check_programs(self, folder, search_path):
        self.assertEqual(sorted(os.listdir(folder)), PROGRAMS)
        for name in ("txl-server", "txl-model"):
            self.assertIn("libtorch_cpu.so", needed(folder / name))
            self.assertEqual(search_paths(folder / name), search_path)

    def check_use(self, root, install, **environment):
        """Installs, then streams; says how long both took."""
        start = time.monotonic()
        install()
        used = root.run(USE, **environment)
        seconds = time.monotonic() - start
        print(f"package_test: {self.id().split('.')[1]}: {seconds:.0f} s from "
              "the start of the installation to streamed text")
        self.assertEqual(len(streamed(used)), TOKENS)
        self.assertEqual(streamed(used), built_stream())


class Wheel(Case):
    def setUp(self):
        self.path = package("whl")
        self.folder_of_files = pathlib.Path(self.folder())
        with zipfile.ZipFile(self.path) as archive:
            archive.extractall(self.folder_of_files)
        info, = self.folder_of_files.glob("*.dist-info")
        self.metadata = email.message_from_string(
            (info / "METADATA").read_text("utf-8"))
        self.tag = email.message_from_string(
            (info / "WHEEL").read_text("utf-8"))["Tag"]

    def test_its_metadata_are_those_of_what_was_built(self):
        version = output(BUILD / "bin/txl-server", "--version").split()[1]
        self.assertEqual((self.metadata["Name"], self.metadata["Version"]),
                         ("txl-server", version))
        setup = (ROOT / "deploy/setup.sh").read_text("utf-8")
        torch = re.search(r"^torch_version=(.*)", setup, re.M)[1]
        self.assertEqual(self.metadata.get_all("Requires-Dist"),
                         [f"torch=={torch}"])

    def test_its_tag_names_the_newest_c_library_that_a_file_asks_for(self):
        self.assertRegex(self.tag, r"^py3-none-manylinux_2_\d+_x86_64$")
        asked = set()
        for path in [*self.folder_of_files.glob("*/bin/*"),
                     *self.folder_of_files.glob("*.libs/*")]:
            asked |= {int(minor) for minor in re.findall(
                r"\bGLIBC_2\.(\d+)", output("readelf", "-V", path))}
        named = int(self.tag.split("_")[2])
        self.assertLessEqual(max(asked), named)
        self.assertLessEqual(named, 36)  # Debian 12's

    def test_it_has_programs_model_and_libraries_but_no_libtorch(self):
        files = self.folder_of_files / "txl_server"
        self.check_programs(files / "bin", [
            "$ORIGIN/../../torch/lib", "$ORIGIN/../../txl_server.libs"])
        self.assertEqual(sorted(os.listdir(
            files / "share/txl/models/shakespeare")), MODEL)
        libraries = os.listdir(self.folder_of_files / "txl_server.libs")
        for name in ("grpc++", "protobuf", "sqlite3", "ssl", "absl_status"):
            self.assertTrue([x for x in libraries
                             if x.startswith(f"lib{name}-")], name)
        self.assertEqual([x for x in libraries if re.match(
            r"lib(torch|c10|gomp|c|m|stdc\+\+)[-.]", x)], [])
        self.assertLess(self.path.stat().st_size, SIZE_LIMITS["whl"])

    def test_its_libraries_are_found_in_it_alone(self):
        for path in (self.folder_of_files / "txl_server.libs").iterdir():
            self.assertLessEqual(set(search_paths(path)), {"$ORIGIN"}, path)

    def test_every_library_that_is_copied_has_its_licence(self):
        licences = self.metadata.get_all("License-File")
        for name in ("libgrpc++", "libprotobuf", "libsqlite3", "libssl",
                     "libabsl", "libc-ares", "libre2"):
            self.assertTrue([x for x in licences
                             if x.startswith(f"libraries/{name}")], name)


class WheelOnUbuntu(Case):
    def test_pip_installs_it_and_it_streams_text(self):
        root = package_root.ubuntu(ROOTS, self.folder())
        environment = root.share_pip_settings()
        root.share(str(package("whl")))
        root.run("python3.11 -m venv /opt/txl")

        def install():
            root.run(f"/opt/txl/bin/pip install -q {package('whl')}",
                     network=True, **environment)

        self.check_use(root, install, PATH="/opt/txl/bin:/usr/bin",
                       MODEL="/opt/txl/lib/python3.11/site-packages/"
                             "txl_server/share/txl/models/shakespeare")


class Quickstart(Case):
    def test_alone_it_installs_a_wheel_and_streams_text_twice(self):
        folder = pathlib.Path(self.folder())
        script = shutil.copy(ROOT / "deploy/quickstart.sh", folder)
        wheel = shutil.copy(package("whl"), folder)
        for _ in range(2):
            text = output(script, "--prebuilt", wheel, "JULIET:", cwd="/")
            self.assertTrue(text.startswith("JULIET:"), text)
            self.assertGreater(len(text), 200)
        self.assertEqual(
            sorted(os.listdir(folder)),
            sorted(["quickstart.sh", "txl-venv", pathlib.Path(wheel).name]))


class Package(Case):
    def setUp(self):
        self.path = package("deb")
        self.folder_of_files = pathlib.Path(self.folder())
        output("dpkg-deb", "-R", self.path, self.folder_of_files)

    def test_it_depends_on_debians_libraries(self):
        depends = output("dpkg-deb", "-f", self.path, "Depends")
        names = {item.split()[0] for item in depends.split(", ")}
        for name in ("libgrpc++1.51", "libprotobuf32", "libsqlite3-0",
                     "libssl3", "libabsl20220623", "libc6"):
            self.assertIn(name, names)
        self.assertLess(self.path.stat().st_size, SIZE_LIMITS["deb"])

    def test_it_has_programs_libtorch_model_pages_and_protos(self):
        usr = self.folder_of_files / "usr"
        self.check_programs(usr / "bin", ["$ORIGIN/../lib/txl-server"])
        self.assertEqual(sorted(os.listdir(usr / "lib/txl-server")), [
            "libc10.so", "libgomp.so.1", "libtorch.so", "libtorch_cpu.so"])
        self.assertEqual(sorted(os.listdir(
            usr / "share/txl/models/shakespeare")), MODEL)
        for name in PROGRAMS:
            for path in (f"man/man1/{name}.1",
                         f"bash-completion/completions/{name}",
                         f"fish/vendor_completions.d/{name}.fish"):
                self.assertTrue((usr / "share" / path).is_file(), path)
        for path in ("txl/v1/generation_service", "grpc/health/v1/health"):
            self.assertTrue((usr / f"share/txl/proto/{path}.proto").is_file())
        self.assertIn("PyTorch", (
            usr / "share/doc/txl-server/libtorch/LICENSE").read_text("utf-8"))

    def test_its_service_is_that_of_the_repository_in_its_own_places(self):
        usr = self.folder_of_files / "usr"
        unit = (usr / "lib/systemd/system/txl-server.service").read_text()
        settings = (self.folder_of_files / "etc/txl/txl-server.env").read_text()
        for text in (unit, settings):
            self.assertNotIn("/opt", text)
        self.assertIn("\nExecStart=/usr/bin/txl-server\n", unit)
        self.assertIn("\nTXL_MODEL=shakespeare\n", settings)
        document = re.search(r"^Documentation=file:/(.*)", unit, re.M)[1]
        self.assertTrue((self.folder_of_files / document).is_file())
        ours = (ROOT / "deploy/systemd/txl-server.service").read_text("utf-8")
        hardening = ours.index("# Where sessions are kept")
        self.assertTrue(unit.endswith(ours[hardening:]))
        self.assertEqual((self.folder_of_files / "DEBIAN/conffiles"
                          ).read_text().split(), ["/etc/txl/txl-server.env"])


class PackageOnDebian(Case):
    def setUp(self):
        self.root = package_root.debian(ROOTS, self.folder())
        self.root.share(str(package("deb")))
        self.apt("install", "--download-only", package("deb"))

    def apt(self, command, *arguments):
        return self.root.run(
            f"apt-get {package_root.APT} {command} {package_root.QUIET} "
            + " ".join(map(str, arguments)), network=True)

    def test_apt_installs_it_it_streams_text_and_a_purge_leaves_nothing(self):
        before = self.root.files()
        self.check_use(
            self.root, lambda: self.apt("install", package("deb")),
            MODEL="/usr/share/txl/models/shakespeare")
        self.assertIn("usr/bin/txl-server", self.root.files())
        # As the service starts it, once its settings are in the environment.
        self.root.run("set -a; . /etc/txl/txl-server.env; "
                      "txl-server --check-config")
        self.root.run("mkdir -p /var/lib/private/txl-server; ln -s "
                      "private/txl-server /var/lib/txl-server")
        self.apt("purge", "txl-server")
        self.apt("autoremove", "--purge")
        self.root.run("rm -r /tmp/out /tmp/log; rmdir /var/lib/private")
        self.assertEqual(self.root.files() ^ before, set())

    def test_the_service_is_off_until_told_and_settings_are_kept(self):
        """systemd's command writes down what it is told."""
        self.root.run("""
            mkdir -p /run/systemd/system
            printf '#!/bin/sh\necho "$@" >> /told\n' > /usr/bin/systemctl
            chmod 755 /usr/bin/systemctl""")

        def told_by(*command):
            self.root.run("> /told")
            self.apt(*command)
            return self.root.run("cat /told").splitlines()

        self.assertEqual(told_by("install", package("deb")),
                         ["daemon-reload"])
        self.root.run("echo TXL_SLOTS=3 >> /etc/txl/txl-server.env")
        self.assertEqual(
            told_by("install", "--reinstall", package("deb")),
            ["daemon-reload", "daemon-reload",
             "try-restart txl-server.service"])
        self.assertIn("TXL_SLOTS=3",
                      self.root.run("cat /etc/txl/txl-server.env"))
        self.assertEqual(told_by("remove", "txl-server"), [
            "stop txl-server.service", "disable --quiet txl-server.service",
            "daemon-reload"])
        self.assertIn("TXL_SLOTS=3",
                      self.root.run("cat /etc/txl/txl-server.env"))


def main():
    global BUILD, ROOTS
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=BUILD)
    parser.add_argument("--roots", type=pathlib.Path)
    arguments, rest = parser.parse_known_args()
    BUILD = arguments.build.resolve()
    ROOTS = (arguments.roots or BUILD / "roots").resolve()
    ROOTS.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
