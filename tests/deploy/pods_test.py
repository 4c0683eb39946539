"""Every pod that deploy/ runs is pinned, bounded, unprivileged and watched."""

import re
import subprocess
import unittest

import tree

VERSION = subprocess.run(
    [tree.SERVER, "--version"], capture_output=True, text=True, check=True
).stdout.split()[1]


def each_container():
    for folder in tree.KUSTOMIZATIONS:
        for template in tree.pod_templates(folder):
            for container in tree.containers(template):
                yield f"{folder} {container['name']}", template, container


def each_server():
    for folder in tree.KUSTOMIZATIONS:
        for template in tree.pod_templates(folder):
            (server,) = template["spec"]["containers"]
            yield folder, template, server


class PodsTest(unittest.TestCase):

    def test_images_are_pinned(self):
        for name, _, container in each_container():
            with self.subTest(name):
                repository, _, tag = container["image"].rpartition(":")
                self.assertTrue(repository, "no tag")
                self.assertNotIn(tag, ("latest", "main", ""))
                if repository == "strata":
                    self.assertIn(tag, (VERSION, VERSION + "-cuda"))

    def test_cuda_image_where_a_gpu_is_asked_for(self):
        for folder, _, server in each_server():
            with self.subTest(folder):
                has_gpu = "nvidia.com/gpu" in server["resources"]["limits"]
                self.assertEqual(server["image"].endswith("-cuda"), has_gpu)
                backend = tree.flags_of(server).get("backend")
                self.assertEqual(backend, "cuda" if has_gpu else None)

    def test_requests_equal_limits(self):
        for name, _, container in each_container():
            with self.subTest(name):
                limits = container["resources"]["limits"]
                self.assertEqual(container["resources"]["requests"], limits)
                self.assertLessEqual({"cpu", "memory"}, set(limits))
                # Whole cores: --threads is made of them.
                self.assertRegex(limits["cpu"], r"^\d+$")

    def test_kv_memory_fits(self):
        for folder, _, server in each_server():
            with self.subTest(folder):
                if "nvidia.com/gpu" in server["resources"]["limits"]:
                    continue  # there it is the GPU's
                flags = tree.flags_of(server)
                if "config" in flags:
                    flags = tree.config_of(folder) | flags
                (kv_gib,) = re.findall(r"^(\d+)GiB$", flags["kv_memory"])
                memory = server["resources"]["limits"]["memory"]
                (gib,) = re.findall(r"^(\d+)Gi$", memory)
                self.assertLessEqual(int(kv_gib) + 2, int(gib))

    def test_threads_are_the_limit(self):
        for folder, _, server in each_server():
            with self.subTest(folder):
                self.assertEqual(
                    tree.flags_of(server)["threads"], "$(CPU_LIMIT)"
                )
                (variable,) = server["env"]
                self.assertEqual(variable["name"], "CPU_LIMIT")
                self.assertEqual(
                    variable["valueFrom"],
                    {"resourceFieldRef": {"resource": "limits.cpu"}},
                )

    def test_unprivileged(self):
        """As the Pod Security Standard `restricted`, and a read-only root."""
        for name, template, container in each_container():
            with self.subTest(name):
                pod = template["spec"].get("securityContext", {})
                own = container["securityContext"]
                both = pod | own
                self.assertIs(own["allowPrivilegeEscalation"], False)
                self.assertIs(own["readOnlyRootFilesystem"], True)
                self.assertEqual(own["capabilities"], {"drop": ["ALL"]})
                self.assertIs(both["runAsNonRoot"], True)
                self.assertEqual(
                    both["seccompProfile"], {"type": "RuntimeDefault"}
                )
                self.assertNotEqual(both.get("runAsUser"), 0)
        for folder in tree.WORKLOADS:
            for template in tree.pod_templates(folder):
                spec = template["spec"]
                self.assertIs(spec["automountServiceAccountToken"], False)
                for key in ("hostNetwork", "hostPID", "hostIPC"):
                    self.assertNotIn(key, spec)
                for volume in spec["volumes"]:
                    self.assertNotIn("hostPath", volume)
            (namespace,) = tree.of_kind(folder, "Namespace")
            self.assertEqual(
                namespace["metadata"]["labels"][
                    "pod-security.kubernetes.io/enforce"
                ],
                "restricted",
            )

    def test_probes(self):
        for folder, _, server in each_server():
            startup = server["startupProbe"]
            readiness = server["readinessProbe"]
            liveness = server["livenessProbe"]
            with self.subTest(folder):
                for probe in (startup, readiness, liveness):
                    self.assertGreaterEqual(probe["timeoutSeconds"], 3)
                has_tls = "tls_cert" in tree.flags_of(server)
                if has_tls:  # which the kubelet's gRPC probes do not speak
                    for probe, page in (
                        (startup, "ready"),
                        (readiness, "ready"),
                        (liveness, "live"),
                    ):
                        self.assertNotIn("grpc", probe)
                        self.assertEqual(
                            probe["httpGet"],
                            {"path": f"/health/{page}", "port": "http"},
                        )
                else:
                    ready = {"port": 8001, "service": "readiness"}
                    self.assertEqual(startup["grpc"], ready)
                    self.assertEqual(readiness["grpc"], ready)
                    self.assertEqual(
                        liveness["grpc"],
                        {"port": 8001, "service": "liveness"},
                    )
                # Big models load for minutes.
                patience = (
                    startup["failureThreshold"] * startup["periodSeconds"]
                )
                self.assertGreaterEqual(patience, 1800)

    def test_tls_overlay_has_tls(self):
        (server,) = [
            server
            for folder, _, server in each_server()
            if folder == "kubernetes/overlays/tls"
        ]
        self.assertLessEqual(tree.TLS_FLAGS, set(tree.flags_of(server)))

    def test_grace_outlasts_the_drain(self):
        flush = 5  # main.cc: kFlushLimit
        for folder, template, server in each_server():
            flags = tree.flags_of(server)
            if "config" in flags:
                flags = tree.config_of(folder) | flags
            delay = tree.seconds(flags["shutdown_delay"])
            drain = tree.seconds(flags["drain_timeout"])
            grace = template["spec"].get(
                "terminationGracePeriodSeconds", 30  # Kubernetes' default
            )
            with self.subTest(folder):
                self.assertGreaterEqual(delay, 5)
                self.assertGreaterEqual(grace, delay + drain + flush + 5)


if __name__ == "__main__":
    unittest.main()
