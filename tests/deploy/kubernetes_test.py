#!/usr/bin/env python3
"""The Kubernetes manifests against the official schemas, in which a field that
is not there is an error, and what must fit among them. Needs the Python package
kubernetes-validate (deploy/setup.sh --all) and promtool."""

import copy
import pathlib
import re
import subprocess
import tempfile
import unittest

import kubernetes_validate
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy/kubernetes"
# The first with gRPC probes for all, and the newest that the package knows.
VERSIONS = ("1.27", kubernetes_validate.latest_version())
NOT_MANIFESTS = {"kustomization.yaml", "prometheus-adapter-values.yaml",
                 "prometheus-scrape.yaml"}


class UniqueKeys(yaml.SafeLoader):
    """YAML in which a key that stands twice is an error."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key) for key, _ in node.value]
        if len(keys) != len(set(keys)):
            raise yaml.YAMLError(f"a key stands twice:{node.start_mark}")
        return super().construct_mapping(node, deep)


def load(name):
    with (FOLDER / name).open(encoding="utf-8") as text:
        return list(yaml.load_all(text, UniqueKeys))


def manifests():
    return [(path.name, document)
            for path in sorted(FOLDER.glob("*.yaml"))
            if path.name not in NOT_MANIFESTS
            for document in load(path.name)]


def find(kind, name):
    return next(d for _, d in manifests()
                if (d["kind"], d["metadata"]["name"]) == (kind, name))


def problem(document, version=VERSIONS[0]):
    """What is wrong with a manifest, "" if nothing."""
    try:
        kubernetes_validate.validate(document, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return f"{'.'.join(map(str, error.path))}: {error.message}"
    return ""


def mappings(value, path=()):
    """Paths of all mappings within a document."""
    if isinstance(value, dict):
        yield path
        for key, child in value.items():
            yield from mappings(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from mappings(child, (*path, index))


# What these hold is the user's: any key is right.
FREE = {"labels", "matchLabels", "annotations", "requests", "limits"}


class Schemas(unittest.TestCase):
    def test_every_manifest_is_valid(self):
        for version in VERSIONS:
            for name, document in manifests():
                with self.subTest(file=name, kind=document["kind"],
                                  version=version):
                    self.assertEqual(problem(document, version), "")

    def test_a_misspelt_field_fails_wherever_it_stands(self):
        places = 0
        for name, document in manifests():
            for path in mappings(document):
                if path and path[-1] in FREE:
                    continue
                changed = copy.deepcopy(document)
                place = changed
                for step in path:
                    place = place[step]
                place["livenesProbe"] = {}
                places += 1
                self.assertIn("livenesProbe", problem(changed),
                              f"{name} {document['kind']} {path}")
        self.assertGreater(places, 100)

    def test_a_wrong_type_and_a_missing_field_fail(self):
        deployment = find("Deployment", "haproxy")
        wrong = copy.deepcopy(deployment)
        wrong["spec"]["revisionHistoryLimit"] = "three"
        self.assertIn("three", problem(wrong))
        del deployment["spec"]["selector"]
        self.assertIn("selector", problem(deployment))

    def test_the_kustomization_names_every_file(self):
        kustomization, = load("kustomization.yaml")
        named = set(kustomization["resources"])
        self.assertEqual(named, {name for name, _ in manifests()} |
                         {"../haproxy"})
        self.assertLessEqual(set(kustomization), {
            "apiVersion", "kind", "namespace", "resources", "images"})
        generator = yaml.safe_load(
            (ROOT / "deploy/haproxy/kustomization.yaml").read_text("utf-8"))
        for item in generator["configMapGenerator"]:
            for file in item["files"]:
                self.assertTrue((ROOT / "deploy/haproxy" / file).exists())


def seconds(text):
    return float(re.fullmatch(r"(\d+)s", text)[1])


class Fit(unittest.TestCase):
    def setUp(self):
        self.set = find("StatefulSet", "txl-server")["spec"]
        self.server = self.set["template"]
        self.container, = self.server["spec"]["containers"]
        self.proxy = find("Deployment", "haproxy")["spec"]["template"]

    def test_no_pod_is_killed_while_it_drains(self):
        environment = {e["name"]: e["value"] for e in self.container["env"]}
        sleep, = self.container["lifecycle"]["preStop"]["exec"]["command"][1:]
        drain = (float(sleep) + seconds(environment["TXL_DRAIN_TIMEOUT"]) + 2)
        for pod in (self.server, self.proxy):
            self.assertGreater(pod["spec"]["terminationGracePeriodSeconds"],
                               drain)
        liveness = self.container["livenessProbe"]
        self.assertGreater(
            liveness["periodSeconds"] * liveness["failureThreshold"], drain)

    def test_no_container_has_rights(self):
        for pod in (self.server, self.proxy):
            spec, (container,) = pod["spec"], pod["spec"]["containers"]
            self.assertFalse(spec["automountServiceAccountToken"])
            self.assertTrue(spec["securityContext"]["runAsNonRoot"])
            self.assertGreater(spec["securityContext"]["runAsUser"], 0)
            self.assertEqual(container["securityContext"], {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]}})
            self.assertIn("memory", container["resources"]["limits"])

    def test_every_probe_of_the_server_asks_for_its_health(self):
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            self.assertEqual(self.container[probe]["httpGet"],
                             {"path": "/health", "port": "metrics"})

    def test_servers_and_haproxy_have_certificates_for_each_other(self):
        arguments = dict(a.removeprefix("--").split("=", 1)
                         for a in self.container["args"])
        for pod, secret, folder in (
                (self.server, "txl-server-tls", "/certs"),
                (self.proxy, "txl-proxy-tls", "/inner")):
            volume, = (v for v in pod["spec"]["volumes"] if v.get(
                "secret", {}).get("secretName") == secret)
            # Its group's, which is the user's, and nobody else's.
            self.assertEqual(volume["secret"]["defaultMode"], 0o440)
            mounts, = ([m for m in c["volumeMounts"]
                        if m["name"] == volume["name"]]
                       for c in pod["spec"]["containers"])
            self.assertEqual(mounts, [{"name": volume["name"], "readOnly": True,
                                       "mountPath": folder}])
        for flag, file in (("tls-cert", "tls.crt"), ("tls-key", "tls.key"),
                           ("tls-client-ca", "ca.crt")):
            self.assertEqual(arguments[flag], f"/certs/{file}")
        environment = {e["name"]: e["value"] for e in self.container["env"]}
        self.assertEqual(environment["TXL_INSECURE"], "false")

    def test_only_haproxy_is_public(self):
        types = {d["metadata"]["name"]: d["spec"].get("type", "ClusterIP")
                 for _, d in manifests() if d["kind"] == "Service"}
        self.assertEqual(types, {"txl-server": "ClusterIP",
                                 "haproxy": "LoadBalancer"})
        deny = find("NetworkPolicy", "nothing-else")["spec"]
        self.assertEqual(deny, {"podSelector": {},
                                "policyTypes": ["Ingress", "Egress"]})
        for rule in find("NetworkPolicy", "txl-server")["spec"]["ingress"]:
            self.assertTrue(rule["from"])

    def test_policies_and_services_name_ports_that_exist(self):
        for policy, pod in (("txl-server", self.server),
                            ("haproxy", self.proxy)):
            ports = {p["name"] for p in pod["spec"]["containers"][0]["ports"]}
            spec = find("NetworkPolicy", policy)["spec"]
            for rule in spec["ingress"]:
                self.assertLessEqual({p["port"] for p in rule["ports"]}, ports)
            service = find("Service", policy)["spec"]
            self.assertLessEqual({p["targetPort"] for p in service["ports"]},
                                 ports)
            self.assertEqual(service["selector"], pod["metadata"]["labels"])

    def test_haproxy_has_places_for_every_server(self):
        haproxy = (ROOT / "deploy/haproxy/haproxy.cfg").read_text("utf-8")
        places = int(re.search(r"server-template txl (\d+)", haproxy)[1])
        scaler = find("HorizontalPodAutoscaler", "txl-server")["spec"]
        self.assertLessEqual(scaler["maxReplicas"], places)
        target = scaler["scaleTargetRef"]
        self.assertEqual((target["kind"], target["name"]),
                         ("StatefulSet", "txl-server"))
        # One place a name, so that a server is the same when it comes back.
        service = find("Service", self.set["serviceName"])
        self.assertEqual(service["spec"]["clusterIP"], "None")
        environment = {e["name"]: e["value"] for e in
                       self.proxy["spec"]["containers"][0]["env"]}
        self.assertEqual(environment, {
            "TXL_PROXY_INNER_CERTIFICATE": "/inner/tls.crt",
            **{f"TXL_PROXY_{kind}_{number + 1}":
               f"txl-server-{number}.{self.set['serviceName']}.txl.svc"
               f".cluster.local:{port}" for number in range(places)
               for kind, port in (("SERVER", 50051), ("HTTP", 8080))}})

    def test_every_server_has_a_volume_for_its_sessions(self):
        claim, = self.set["volumeClaimTemplates"]
        mount, = (m for m in self.container["volumeMounts"]
                  if m["name"] == claim["metadata"]["name"])
        environment = {e["name"]: e["value"] for e in self.container["env"]}
        self.assertTrue(environment["TXL_DATA_DIR"].startswith(
            mount["mountPath"] + "/"))
        # The volume is the group's of the user that runs.
        security = self.server["spec"]["securityContext"]
        self.assertEqual(security["fsGroup"], security["runAsGroup"])
        # The database, state images of half its size, and its log.
        store = int(environment["TXL_STORE_BYTES"].removesuffix("gb")) * 10**9
        storage = claim["spec"]["resources"]["requests"]["storage"]
        self.assertGreater(int(storage.removesuffix("Gi")) << 30,
                           store * 3 // 2 + (1 << 30))

    def test_the_adapter_serves_what_the_autoscaler_asks_for(self):
        values, = load("prometheus-adapter-values.yaml")
        rule, = values["rules"]["custom"]
        pattern = re.search(r'__name__=~"([^"]+)"', rule["seriesQuery"])[1]
        metrics = find("HorizontalPodAutoscaler", "txl-server")["spec"][
            "metrics"]
        self.assertEqual(len(metrics), 2)
        for metric in metrics:
            self.assertRegex(metric["pods"]["metric"]["name"], f"^{pattern}$")

    def test_prometheus_accepts_the_scrape_configurations(self):
        scrapes, = load("prometheus-scrape.yaml")
        ours = yaml.safe_load((ROOT / "deploy/monitoring/prometheus.yml")
                              .read_text("utf-8"))["scrape_configs"]
        self.assertEqual([s["job_name"] for s in scrapes],
                         [s["job_name"] for s in ours])
        # Debian's promtool knows no Kubernetes: its part is looked at here.
        for scrape in scrapes:
            self.assertEqual(scrape.pop("kubernetes_sd_configs"), [
                {"role": "pod", "namespaces": {"names": ["txl"]}}])
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            yaml.safe_dump({"scrape_configs": scrapes}, file)
            file.flush()
            subprocess.run(["promtool", "check", "config", file.name],
                           check=True, capture_output=True)


if __name__ == "__main__":
    unittest.main()
