"""The process itself: its log, sockets, files, signals and settings."""

import os
import signal
import socket
import time

import api
import observe
from case import TINY, Attack
from server import Fell, copy_model, expect


def unread_log(site, size):
    """Standard error is a pipe, and nobody reads it."""
    reading, writing = os.pipe()
    try:
        server = site.server("--slots", "4", "--drain-timeout", "2s",
                             stderr=writing)
        os.close(writing)
        server.mark()
        done = 0
        try:
            with server.client() as client:
                for done in range(size.calls):
                    client.call("Model.GetServerStatus", timeout=5)
                health = client.health_seconds(timeout=2)
        except (TimeoutError, OSError) as error:
            raise Fell(f"frozen after {done} calls with an unread log, "
                       f"SIGTERM then: {_end(server)}") from error
        growth = server.growth()
        server.marked = None
        ended = _end(server)
        expect(isinstance(ended, float), f"SIGTERM with an unread log: {ended}")
        expect(growth <= 64 << 20, f"{growth} bytes for a log")
        return (f"{size.calls} calls, health {health * 1e3:.1f} ms, exit 0 "
                f"{ended:.1f} s after SIGTERM")
    finally:
        os.close(reading)


def _end(server):
    """Seconds from SIGTERM to an exit of 0, or what else happened."""
    begin = time.monotonic()
    try:
        status = server.stop(timeout=5)
    except Fell as fell:
        return str(fell)
    return time.monotonic() - begin if status == 0 else f"exit {status}"


def socket_takeover(site, _):
    """Two servers on one path, and one that died on it."""
    path = site.folder() / "socket"
    listen = f"unix:{path}"
    first = site.server("--slots", "4", listen=listen)
    status, said = site.try_program("--model", TINY, "--listen", listen,
                                    timeout=5)
    expect(status not in (None, 0), "a second server takes the socket over")
    expect(str(path) in said, f"the second one does not name {path}: {said}")
    first.expect_well()
    first.kill()
    again = site.server("--slots", "4", listen=listen)
    again.expect_well()
    expect(again.stop() == 0 and not path.exists(), "the socket's file stays")
    plain = site.folder() / "file"
    plain.write_text("precious")
    status, _ = site.try_program("--model", TINY, "--listen", f"unix:{plain}",
                                 timeout=5)
    expect(status not in (None, 0) and plain.is_file() and
           plain.read_text() == "precious", "a plain file was taken for it")
    return "the second was refused, the first serves; a dead one's is taken"


def misspelt_variable(site, _):
    for name, value, near in (("TXL_DRAIN_TIMOUT", "5s", "TXL_DRAIN_TIMEOUT"),
                              ("TXL_SLOT", "4", "TXL_SLOTS")):
        status, said = site.try_program(
            "--model", TINY, "--check-config", environment={name: value})
        expect(status == 2 and name in said and near in said,
               f"{name}={value}: exit {status}, {said.strip()[-200:]!r}")
    config = site.folder() / "config.toml"
    config.write_text('drain-timout = "5s"\n')
    status, said = site.try_program("--model", TINY, "--check-config",
                                    "--config", config)
    expect(status == 2 and "drain-timeout" in said,
           f"drain-timout: exit {status}, {said.strip()[-200:]!r}")
    return "refused with the nearest name"


def truncated_weights(site, _):
    """What --check-config says is what a start would."""
    target = copy_model(TINY, site.folder() / "model")
    weights = target / "model.safetensors"
    whole = weights.read_bytes()
    for size in (len(whole) - 1, len(whole) // 2, 100, 0):
        weights.write_bytes(whole[:size])
        status, said = site.try_program("--model", target, "--check-config")
        expect(status == 1 and "model.safetensors" in said,
               f"--check-config on {size} of {len(whole)} bytes: exit {status}")
    weights.write_bytes(whole)
    status, said = site.try_program("--model", target, "--check-config")
    expect(status == 0, f"--check-config on whole weights: {status} {said}")
    return "4 cuts refused by name, whole weights pass"


def special_files(site, size):
    """FIFOs, devices and folders in the place of files."""
    cases = 0
    for name in ("vocab.txt", "model.safetensors", "config.json",
                 "tokenizer.json", "generation.json"):
        for kind in size.kinds:
            target = copy_model(TINY, site.folder() / "model")
            (target / "vocab.txt").write_text(
                "".join(f"{chr(65 + i)}\n" for i in range(61)))
            (target / "tokenizer.json").write_text(
                '{"kind": "characters", "file": "vocab.txt"}')
            file = target / name
            file.unlink(missing_ok=True)
            if kind == "fifo":
                os.mkfifo(file)
            elif kind == "folder":
                file.mkdir()
            else:
                file.symlink_to("/dev/zero")
            for arguments in (["--listen", "127.0.0.1:0"],
                              ["--check-config"])[:size.starts]:
                status, said = site.try_program("--model", target, *arguments,
                                                timeout=5)
                expect(status == 1 and name in said, f"{kind} as {name}, "
                       f"{arguments[0]}: exit {status} {said.strip()[-150:]!r}")
                cases += 1
    return f"{cases} starts refused, each names the file"


def hang_up(site, _):
    server = site.server("--slots", "4")
    with server.client() as client:
        stream = client.start("Generation.Generate", api.turn(4096))
        server.process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        expect(server.alive(), f"SIGHUP ended it: {server.process.poll()}")
        status = client.finish(stream)
        expect(status.code == api.OK, f"a turn beside SIGHUP: {status}")
    server.expect_well()
    expect(server.stop() == 0, "no exit 0 after SIGHUP and SIGTERM")
    return "it serves on"


def exits(site, _):
    """0: drained; 3: forced by a second SIGTERM, or by who does not read."""
    drained = site.server("--slots", "4")
    with drained.client() as client:
        client.generate(api.turn(3))
    expect(drained.stop() == 0, "drained, but not 0")
    forced = site.server("--slots", "4", "--drain-timeout", "60s")
    with forced.connect(window=0) as connection:
        connection.open(api.path_of("Generation.Generate"), api.message(
            "GenerateRequest", **api.turn(4096,
                                          logprobs=20)).SerializeToString())
        time.sleep(0.3)
        forced.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        expect(forced.alive(), "it did not wait for its turn")
        begin = time.monotonic()
        status = forced.stop(5)
        seconds = time.monotonic() - begin
    expect(status == 3 and seconds < 2,
           f"the second SIGTERM: exit {status} after {seconds:.1f} s")
    return f"0 drained, 3 forced after {seconds * 1e3:.0f} ms"


def metrics_abuse(site, size):
    """The HTTP endpoint of metrics: garbage, half requests, long lines."""
    server = site.server("--slots", "4", "--metrics-listen", "127.0.0.1:0",
                         "--log-level", "error")
    line = server.process.stdout.readline()
    host, _, port = line.split("//")[1].split("/")[0].partition(":")
    server.mark()
    bad = [b"", b"\0" * 100, b"GET", b"GET /metrics HTTP/1.1\r\n",
           b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20000, b"X" * 1_000_000,
           b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
           b"GET /metrics HTTP/9.9\r\n\r\n"]
    held = []
    for i in range(size.connections):
        channel = socket.create_connection((host, int(port)), 5)
        channel.settimeout(2)
        try:
            channel.sendall(bad[i % len(bad)])
        except OSError:
            pass
        held.append(channel)
    median, longest = observe.health(server, 20)
    expect(median < 0.1, f"health took {median * 1e3:.0f} ms")
    for channel in held:
        channel.close()
    with socket.create_connection((host, int(port)), 5) as channel:
        channel.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n"
                        b"Connection: close\r\n\r\n")
        expect(b"200" in channel.recv(100), "no metrics afterwards")
    server.expect_well()
    return (f"{len(held)} bad requests, health {longest * 1e3:.1f} ms at most")


ATTACKS = [
    Attack("unread-log", "limits", "it serves on and stops with exit 0",
           unread_log, {"calls": 1000}, {"calls": 20_000}),
    Attack("socket-takeover", "limits", "the second one is refused",
           socket_takeover, {}, {}),
    Attack("misspelt-variable", "limits", "exit 2 with the nearest name",
           misspelt_variable, {}, {}),
    Attack("truncated-weights", "limits", "--check-config exits with 1",
           truncated_weights, {}, {}),
    Attack("special-files", "limits", "refused within 5 s by name",
           special_files, {"kinds": ["fifo"], "starts": 1},
           {"kinds": ["fifo", "folder", "zero"], "starts": 2}),
    Attack("hang-up", "limits", "it serves on", hang_up, {}, {}),
    Attack("exits", "limits", "0 drained, 3 forced", exits, {}, {}),
    Attack("metrics-abuse", "limits", "health within 100 ms (median)",
           metrics_abuse, {"connections": 40}, {"connections": 200}),
]
