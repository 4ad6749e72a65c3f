#!/usr/bin/env python3
"""What the files of deploy/ promise, checked without running anything. Needs
PyYAML (Debian's python3-yaml)."""

import json
import re
import unittest

import yaml

import compose_file
import draw_expressions
import expressions
from expressions import ALERTS, DASHBOARD, MONITORING

ROOT = MONITORING.parents[1]
COMPOSE = ROOT / "deploy/compose/compose.yaml"
HAPROXY = (ROOT / "deploy/haproxy/haproxy.cfg").read_text(encoding="utf-8")


SHARED = COMPOSE.with_name("shared.yaml")


def compose_document(path=COMPOSE):
    """Without what its parts share in memory."""
    return json.loads(json.dumps(
        yaml.safe_load(path.read_text(encoding="utf-8"))))


def weaknesses_with(change):
    """Of the compose file with something changed."""
    document = compose_document()
    change(document)
    return compose_file.weaknesses(*compose_file.parse(document,
                                                       COMPOSE.parent))


class ComposeFile(unittest.TestCase):
    def test_only_haproxy_is_public_and_nothing_has_rights(self):
        self.assertEqual(weaknesses_with(lambda document: None), [])

    def test_every_weakness_would_be_seen(self):
        server = "txl-1"
        for change, found in (
                (lambda s: s.update(user="0:0"), "it runs as root"),
                (lambda s: s.pop("user"), "it runs as root"),
                (lambda s: s.update(user="txl"), "it runs as root"),
                (lambda s: s.update(read_only=False),
                 "its root can be written"),
                (lambda s: s.update(cap_drop=["NET_RAW"]),
                 "it keeps capabilities"),
                (lambda s: s.update(security_opt=[]),
                 "it may gain privileges"),
                (lambda s: s["deploy"]["resources"]["limits"].pop("memory"),
                 "its memory has no limit"),
                (lambda s: s["deploy"]["resources"]["limits"].pop("pids"),
                 "its processes have no limit"),
                (lambda s: s.update(ports=["50051:50051"]),
                 "port 50051 is public"),
                (lambda s: s.update(networks=["public"]),
                 "it is in a network with a way out")):
            self.assertEqual(
                weaknesses_with(lambda d: change(d["services"][server])),
                [f"{server}: {found}"])

    def test_a_misspelt_key_is_an_error(self):
        document = compose_document()
        document["services"]["haproxy"]["readonly"] = True
        with self.assertRaisesRegex(ValueError, "readonly"):
            compose_file.parse(document, COMPOSE.parent)

    def test_variables_have_defaults(self):
        services, _ = compose_file.load(COMPOSE)
        self.assertEqual(services["haproxy"].ports[0].published, 8443)
        services, _ = compose_file.load(
            COMPOSE, {"TXL_PUBLIC_PORT": "443", "TXL_MODEL": "/models/mine"})
        self.assertEqual(services["haproxy"].ports[0].published, 443)
        self.assertEqual(services["txl-1"].volumes[0].source,
                         "/models/mine")

    def test_nothing_is_said_without_tls(self):
        services, _ = compose_file.load(COMPOSE)
        for server in (s for s in services.values() if s.image == "txl"):
            flags = dict(zip(server.command[::2], server.command[1::2]))
            folder, = (v for v in server.volumes if v.target == "/certs")
            self.assertTrue(folder.read_only)
            for flag in ("--tls-cert", "--tls-key", "--tls-client-ca"):
                self.assertTrue(flags[flag].startswith("/certs/"), flag)
            self.assertEqual(server.environment["TXL_INSECURE"], "false")
            self.assertIn("--tls-cert", server.health)

    def test_a_stop_waits_for_the_drain(self):
        services, _ = compose_file.load(COMPOSE)
        server = services["txl-1"]
        drain = float(server.environment["TXL_DRAIN_TIMEOUT"].rstrip("s"))
        self.assertGreater(server.stop_seconds, drain + 2)
        self.assertGreater(services["haproxy"].stop_seconds, drain + 2)

    def test_haproxy_and_prometheus_know_every_server(self):
        services, _ = compose_file.load(COMPOSE)
        servers = [s for s in services.values() if s.image == "txl"]
        known = {"TXL_PROXY_INNER_CERTIFICATE": "/inner/tls.crt"}
        for number, server in enumerate(servers, 1):
            known[f"TXL_PROXY_SERVER_{number}"] = f"{server.name}:50051"
            known[f"TXL_PROXY_HTTP_{number}"] = f"{server.name}:8080"
        self.assertEqual(services["haproxy"].environment, known)
        for server in servers:
            self.assertEqual(server.networks, {"inner": ["txl-server"]})

    def test_every_server_keeps_its_sessions_in_a_volume_of_its_own(self):
        document = compose_document()
        services, _ = compose_file.load(COMPOSE)
        kept = [v.source for s in services.values() if s.image == "txl"
                for v in s.volumes if not v.read_only
                and v.target == s.environment["TXL_DATA_DIR"]]
        servers = [s for s in services.values() if s.image == "txl"]
        self.assertEqual(len(kept), len(servers))
        self.assertEqual(len(set(kept)), len(kept))
        self.assertLessEqual(set(kept), set(document["volumes"]))
        # As the image has it: a new volume is its user's.
        dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
        self.assertEqual(dockerfile.count(
            "install -d -o 10001 -g 10001 -m 700 /data"), 2)
        self.assertEqual({s.user for s in servers}, {"10001:10001"})

    def test_every_file_that_it_mounts_exists(self):
        services, _ = compose_file.load(COMPOSE)
        sources = [v.source for s in services.values() for v in s.volumes
                   if v.source.startswith("/")]
        missing = [s for s in sources if "/certificates" not in s and
                   not (ROOT / s).exists()]
        self.assertEqual(missing, [])


class SharedStore(unittest.TestCase):
    def setUp(self):
        self.document = compose_file.merged(compose_document(),
                                            compose_document(SHARED))
        self.services, self.networks = compose_file.parse(self.document,
                                                          COMPOSE.parent)
        self.servers = [s for name, s in self.services.items()
                        if name.startswith("txl-")]

    def test_nothing_more_is_public_or_has_rights(self):
        self.assertEqual(compose_file.weaknesses(self.services, self.networks),
                         [])

    def test_three_servers_keep_their_sessions_in_it_alone(self):
        self.assertEqual(len(self.servers), 3)
        for server in self.servers:
            self.assertEqual(server.environment["TXL_DATA_DIR"], "")
            self.assertEqual(server.environment["TXL_STORE"],
                             "redis://redis:6379")
        self.assertEqual([v.target for v in self.services["redis"].volumes],
                         ["/data"])

    def test_three_servers_have_their_images_in_one_volume(self):
        for server in self.servers:
            folder = server.environment["TXL_IMAGE_DIR"]
            self.assertEqual([(v.source, v.read_only) for v in server.volumes
                              if v.target == folder], [("images", False)])
            self.assertIn("/model", [v.target for v in server.volumes])
        self.assertIn("images", self.document["volumes"])

    def test_haproxy_knows_all_and_that_any_has_every_session(self):
        environment = self.services["haproxy"].environment
        self.assertEqual(environment["TXL_PROXY_SHARED"], "1")
        for number in (1, 2, 3):
            self.assertEqual(environment[f"TXL_PROXY_SERVER_{number}"],
                             f"txl-{number}:50051")
            self.assertEqual(environment[f"TXL_PROXY_HTTP_{number}"],
                             f"txl-{number}:8080")

    def test_redis_forgets_nothing(self):
        options = self.services["redis"].command[1:]
        given = dict(zip(options[::2], options[1::2]))
        self.assertEqual((given["--appendonly"], given["--appendfsync"],
                          given["--maxmemory-policy"]),
                         ("yes", "always", "noeviction"))


class Images(unittest.TestCase):
    def test_every_base_image_can_be_pinned_by_an_argument(self):
        dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
        arguments = re.findall(r"^ARG (\w+)=", dockerfile, re.M)
        bases = re.findall(r"^FROM (\S+)", dockerfile, re.M)
        self.assertEqual(len(bases), 4)
        for base in bases:
            self.assertIn(base, [f"${{{name}}}" for name in arguments])

    def test_every_image_of_the_compose_file_can_be_pinned(self):
        pinned = "a/b@sha256:" + 64 * "0"
        services, _ = compose_file.load(COMPOSE, {
            name: pinned for name in ("HAPROXY_IMAGE", "PROMETHEUS_IMAGE",
                                      "GRAFANA_IMAGE")})
        self.assertEqual({s.image for s in services.values()},
                         {"txl", pinned})


    def test_the_image_says_that_its_listeners_have_no_tls(self):
        dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
        stages = [stage for stage in dockerfile.split("\nFROM ")
                  if "ENTRYPOINT" in stage]
        self.assertEqual(len(stages), 2)
        for stage in stages:
            self.assertIn("TXL_LISTEN=0.0.0.0:50051", stage)
            self.assertIn("TXL_HTTP_LISTEN=0.0.0.0:8080", stage)
            self.assertIn("TXL_INSECURE=true", stage)
            self.assertIn("\nEXPOSE 50051 8080\n", stage)


class Proxy(unittest.TestCase):
    def test_it_has_rules_for_every_server(self):
        for number in range(1, 9):
            self.assertIn(f"server txl{number} ", HAPROXY)
            self.assertRegex(HAPROXY, rf"txn\.owner\) -m int {number} }}"
                             rf" !{{ srv_is_up\(servers/txl{number}\) }}")
            self.assertIn(f'server txl{number} "${{TXL_PROXY_HTTP_{number}[*]}}"'
                          f" track servers/txl{number}\n", HAPROXY)
        self.assertIn("server-template txl 8 ", HAPROXY)
        self.assertNotIn("txl9", HAPROXY)

    def test_it_verifies_servers_and_shows_them_a_certificate(self):
        for backend in re.split(r"^backend ", HAPROXY, flags=re.M)[1:]:
            if backend.startswith(("servers\n", "web\n")):
                for part in (" verify required ", " verifyhost ", " crt ",
                             " ca-file ", " ssl-min-ver TLSv1.2 "):
                    self.assertIn(part, backend)

    def test_it_lets_every_path_of_http_through_but_metrics(self):
        routes = set(re.findall(
            r'^ +\{"(/[^"]*)", "(?:GET|POST)"', (
                ROOT / "server/http/endpoints.cc").read_text("utf-8"), re.M))
        self.assertGreater(len(routes), 8)
        allowed = re.search(r"acl web path (/.*)", HAPROXY)[1].split()
        self.assertEqual(routes - {"/metrics"} - set(allowed), set())
        self.assertNotIn("/metrics", allowed)

    def test_a_server_takes_all_its_connections_and_health_checks(self):
        settings = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
        taken = int(re.search(r"\| `--max-connections` \| ([0-9]+) \|",
                              settings)[1])
        opened = int(re.search(r"default-server proto h2 .* maxconn (\d+) ",
                               HAPROXY)[1])
        # Each call has its own.
        self.assertIn(" max-reuse 0 ", HAPROXY)
        self.assertLessEqual(opened + 24, taken)

    def test_the_bytes_of_its_health_check_are_a_grpc_call(self):
        sent = bytes.fromhex("".join(
            re.findall(r"send-binary ([0-9a-f]+)", HAPROXY)))
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        self.assertTrue(sent.startswith(preface))
        frames, rest = [], sent[len(preface):]
        while rest:
            length = int.from_bytes(rest[:3], "big")
            frames.append((rest[3], rest[4], int.from_bytes(rest[5:9], "big"),
                           rest[9:9 + length]))
            rest = rest[9 + length:]
        settings, headers, data = frames
        self.assertEqual(settings, (4, 0, 0, b""))
        self.assertEqual(headers[:3], (1, 4, 1))  # END_HEADERS, stream 1
        for text in (b"/grpc.health.v1.Health/Check", b"application/grpc",
                     b"trailers"):
            self.assertIn(bytes([len(text)]) + text, headers[3])
        # END_STREAM; a message that is not compressed, of no bytes
        self.assertEqual(data, (0, 1, 1, bytes(5)))


class Dashboard(unittest.TestCase):
    def setUp(self):
        self.panels = json.loads(DASHBOARD.read_text("utf-8"))["panels"]

    def test_panels_have_ids_of_their_own_and_do_not_overlap(self):
        ids = [p["id"] for p in self.panels]
        self.assertEqual(len(ids), len(set(ids)))
        cells = [(x, y) for p in self.panels for g in [p["gridPos"]]
                 for x in range(g["x"], g["x"] + g["w"])
                 for y in range(g["y"], g["y"] + g["h"])]
        self.assertEqual(len(cells), len(set(cells)))
        self.assertLessEqual(max(x for x, _ in cells), 23)

    def test_its_data_source_is_whichever_prometheus_there_is(self):
        used = {p["datasource"]["uid"] for p in self.panels
                if p["type"] != "row"}
        self.assertEqual(used, {"${datasource}"})
        variables = json.loads(DASHBOARD.read_text("utf-8"))["templating"]
        source = variables["list"][0]  # the others ask it
        self.assertEqual((source["name"], source["type"], source["query"]),
                         ("datasource", "datasource", "prometheus"))

    def test_every_variable_of_its_expressions_is_filled_in(self):
        for expression in expressions.dashboard_expressions(DASHBOARD):
            self.assertNotIn("$", expression.text)


class Alerts(unittest.TestCase):
    def test_each_one_fires_in_a_test(self):
        rules = [rule for group in yaml.safe_load(ALERTS.read_text("utf-8"))
                 ["groups"] for rule in group["rules"]]
        tests = yaml.safe_load(
            (ROOT / "tests/deploy/alerts_test.yml").read_text("utf-8"))
        fired = {t["alertname"] for group in tests["tests"]
                 for t in group["alert_rule_test"] if t["exp_alerts"]}
        self.assertEqual({rule["alert"] for rule in rules}, fired)
        for rule in rules:
            self.assertIn(rule["labels"]["severity"], ("critical", "warning"))


class Expressions(unittest.TestCase):
    def test_an_alert_is_split_at_its_outer_comparison(self):
        for text, left in (
                ("up == 0", "up"),
                ('a{b="x > y"} >= 3', 'a{b="x > y"}'),
                ('1 - sum(a{b!="c"}) / sum(a) > 0.5',
                 '1 - sum(a{b!="c"}) / sum(a)'),
                ("sum(a == 1) < 2", "sum(a == 1)"),
                ("a", "a")):
            self.assertEqual(expressions.operands(text)[0], left)

    def test_a_legend_takes_its_labels(self):
        expression = expressions.Expression("t", "panel", "{{a}} of {{b}}", "")
        self.assertEqual(
            expressions.legend(expression, {"a": "1", "c": "3"}), "1 of ")


class Picture(unittest.TestCase):
    def test_expressions_of_a_panel_share_a_plot(self):
        curve = {"label": "x", "values": [[10, "1"], [15, "NaN"], [20, "3"]]}
        results = [
            {"kind": "panel", "origin": "A", "curves": [curve]},
            {"kind": "panel", "origin": "A", "curves": [curve, curve]},
            {"kind": "alert", "origin": "A", "curves": [curve]}]
        self.assertEqual(
            [(kind, title, len(curves)) for kind, title, curves in
             draw_expressions.plots(results)],
            [("panel", "A", 3), ("alert", "A", 1)])
        self.assertEqual(draw_expressions.start_time(results), 10)
        self.assertEqual(draw_expressions.points(curve, 10),
                         [(0, 1), (10, 3)])


if __name__ == "__main__":
    unittest.main()
