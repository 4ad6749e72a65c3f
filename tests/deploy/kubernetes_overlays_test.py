#!/usr/bin/env python3
"""The overlays over deploy/kubernetes: their own manifests are valid, and what
they change is there. Needs what kubernetes_test.py does."""

import unittest

import yaml

import kubernetes_test
from kubernetes_test import ROOT, VERSIONS, find, problem

SHARED = ROOT / "deploy/kubernetes-shared"
IMAGES = SHARED / "images"
GPU = ROOT / "deploy/kubernetes-gpu"


def load(path):
    return list(yaml.load_all(path.read_text("utf-8"),
                              kubernetes_test.UniqueKeys))


def patches(folder):
    """The documents that are laid over others."""
    kustomization, = load(folder / "kustomization.yaml")
    for patch in kustomization["patches"]:
        if "path" in patch:
            yield from load(folder / patch["path"])
        elif "target" not in patch:
            yield yaml.safe_load(patch["patch"])


def containers(document):
    return {c["name"]: c for c in
            document["spec"]["template"]["spec"]["containers"]}


class Overlays(unittest.TestCase):
    def test_what_they_change_is_there(self):
        for folder in (SHARED, GPU):
            kustomization, = load(folder / "kustomization.yaml")
            self.assertIn("../kubernetes", kustomization["resources"])
            for patch in patches(folder):
                base = find(patch["kind"], patch["metadata"]["name"])
                self.assertEqual(patch["apiVersion"], base["apiVersion"])
                if "template" in patch["spec"]:
                    self.assertLessEqual(set(containers(patch)),
                                         set(containers(base)))

    def test_a_server_has_one_gpu(self):
        patch, = patches(GPU)
        server = containers(patch)["txl-server"]
        self.assertEqual(server["resources"]["limits"], {"nvidia.com/gpu": 1})
        self.assertIn({"name": "TXL_DEVICE", "value": "cuda"}, server["env"])


class Shared(unittest.TestCase):
    def setUp(self):
        self.redis = {d["kind"] + " " + d["metadata"]["name"]: d
                      for d in load(SHARED / "redis.yaml")}

    def test_every_manifest_is_valid(self):
        for version in VERSIONS:
            for name, document in self.redis.items():
                self.assertEqual(problem(document, version), "", name)

    def test_servers_keep_their_sessions_in_redis_alone(self):
        server = next(containers(p)["txl-server"] for p in patches(SHARED)
                      if p["kind"] == "StatefulSet")
        environment = {e["name"]: e["value"] for e in server["env"]}
        self.assertEqual(environment, {
            "TXL_DATA_DIR": "",
            "TXL_STORE": "redis://redis.txl.svc.cluster.local:6379"})
        self.assertEqual(server["volumeMounts"],
                         [{"mountPath": "/data", "$patch": "delete"}])

    def test_images_may_be_in_one_volume_for_all_servers(self):
        kustomization, = load(IMAGES / "kustomization.yaml")
        self.assertEqual(kustomization["kind"], "Component")
        claim, = load(IMAGES / "claim.yaml")
        for version in VERSIONS:
            self.assertEqual(problem(claim, version), "")
        self.assertEqual(claim["spec"]["accessModes"], ["ReadWriteMany"])
        patch, = patches(IMAGES)
        server = containers(patch)["txl-server"]
        self.assertEqual(server["env"], [
            {"name": "TXL_IMAGE_DIR", "value": "/images"}])
        mount, = server["volumeMounts"]
        volume, = patch["spec"]["template"]["spec"]["volumes"]
        self.assertEqual(mount, {"name": volume["name"],
                                 "mountPath": "/images"})
        self.assertEqual(volume["persistentVolumeClaim"]["claimName"],
                         claim["metadata"]["name"])

    def test_haproxy_knows_that_any_server_has_every_session(self):
        proxy = next(containers(p)["haproxy"] for p in patches(SHARED)
                     if p["kind"] == "Deployment")
        self.assertEqual(proxy["env"],
                         [{"name": "TXL_PROXY_SHARED", "value": "1"}])

    def test_redis_forgets_nothing_and_only_servers_reach_it(self):
        pod = self.redis["StatefulSet redis"]["spec"]["template"]["spec"]
        container, = pod["containers"]
        given = dict(zip(container["args"][::2], container["args"][1::2]))
        self.assertEqual((given["--appendonly"], given["--appendfsync"],
                          given["--maxmemory-policy"]),
                         ("yes", "always", "noeviction"))
        self.assertTrue(pod["securityContext"]["runAsNonRoot"])
        policy = self.redis["NetworkPolicy redis"]["spec"]
        rule, = policy["ingress"]
        self.assertEqual(rule["from"], [{"podSelector": {"matchLabels": {
            "app.kubernetes.io/name": "txl-server"}}}])
        self.assertNotIn("egress", policy)


if __name__ == "__main__":
    unittest.main()
