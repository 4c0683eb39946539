"""What must agree between the manifests, the server and monitoring/ does."""

import unittest

import yaml

import tree

SECRETS = {"strata-tls", "strata-keys"}  # made by who deploys


def matches(selector: dict, labels: dict) -> bool:
    return selector.items() <= labels.items()


class WiringTest(unittest.TestCase):

    def test_arguments_and_config_are_flags_of_the_server(self):
        for folder in tree.KUSTOMIZATIONS:
            for template in tree.pod_templates(folder):
                (server,) = template["spec"]["containers"]
                names = set(tree.flags_of(server))
                if "config" in names:
                    names |= set(tree.config_of(folder))
                with self.subTest(folder):
                    self.assertEqual(names - set(tree.flags()), set())

    def test_ports_are_the_servers(self):
        grpc = int(tree.flags()["grpc_port"])
        http = int(tree.flags()["http_port"])
        for folder in tree.WORKLOADS:
            config = tree.config_of(folder)
            self.assertEqual(config["grpc_port"], grpc)
            self.assertEqual(config["http_port"], http)
            self.assertEqual(config["host"], "0.0.0.0")
            for template in tree.pod_templates(folder):
                (server,) = template["spec"]["containers"]
                ports = {p["name"]: p["containerPort"] for p in server["ports"]}
                self.assertEqual(ports, {"grpc": grpc, "http": http})
            for service in tree.of_kind(folder, "Service"):
                (port,) = service["spec"]["ports"]
                self.assertEqual(port["port"], grpc)
                self.assertEqual(port["targetPort"], "grpc")
        for template in tree.pod_templates("kserve"):
            (server,) = template["spec"]["containers"]
            (port,) = server["ports"]
            self.assertEqual(port["containerPort"], grpc)
            self.assertEqual(port["name"], "h2c")
        (runtime,) = tree.of_kind("kserve", "ClusterServingRuntime")
        self.assertEqual(
            runtime["spec"]["annotations"]["prometheus.kserve.io/port"],
            str(http),
        )
        (pool,) = tree.of_kind("gateway", "InferencePool")
        self.assertEqual(pool["spec"]["targetPorts"], [{"number": grpc}])

    def test_selectors_find_the_pods_and_nothing_else(self):
        wanted = {"app.kubernetes.io/name": "strata"}
        gateway = list(tree.objects("gateway"))
        for folder in tree.WORKLOADS:
            (template,) = tree.pod_templates(folder)
            labels = template["metadata"]["labels"]
            self.assertTrue(matches(wanted, labels))
            for obj in list(tree.objects(folder)) + gateway:
                spec = obj.get("spec", {})
                if obj["kind"] == "Service":
                    selector = spec["selector"]
                elif obj["kind"] == "NetworkPolicy":
                    selector = spec["podSelector"]["matchLabels"]
                elif "selector" in spec:
                    selector = spec["selector"]["matchLabels"]
                else:
                    continue
                name = f"{folder} {obj['kind']} {obj['metadata']['name']}"
                with self.subTest(name):
                    self.assertEqual(selector, wanted)
            for spread in template["spec"]["topologySpreadConstraints"]:
                self.assertEqual(spread["labelSelector"]["matchLabels"], wanted)

    def test_clients_need_no_label_of_the_server(self):
        (policy,) = tree.of_kind("kubernetes/overlays/cpu", "NetworkPolicy")
        calls, scrapes = policy["spec"]["ingress"]
        (client,) = calls["from"]
        self.assertEqual(
            client["podSelector"]["matchLabels"], {"strata-client": "true"}
        )
        self.assertEqual(client["namespaceSelector"], {})
        self.assertEqual(calls["ports"], [{"port": "grpc"}])
        self.assertEqual(scrapes["ports"], [{"port": "http"}])
        # No egress rule: nothing goes out.
        self.assertIn("Egress", policy["spec"]["policyTypes"])
        self.assertNotIn("egress", policy["spec"])

    def test_what_pods_name_is_there(self):
        for folder in tree.WORKLOADS:
            names = {
                (obj["kind"], obj["metadata"]["name"])
                for obj in tree.objects(folder)
            }
            (template,) = tree.pod_templates(folder)
            spec = template["spec"]
            self.assertIn(("ServiceAccount", spec["serviceAccountName"]), names)
            for volume in spec["volumes"]:
                with self.subTest(f"{folder} {volume['name']}"):
                    if "configMap" in volume:
                        name = ("ConfigMap", volume["configMap"]["name"])
                        self.assertIn(name, names)
                    elif "persistentVolumeClaim" in volume:
                        claim = volume["persistentVolumeClaim"]
                        self.assertTrue(claim["readOnly"])
                        name = ("PersistentVolumeClaim", claim["claimName"])
                        self.assertIn(name, names)
                    elif "secret" in volume:
                        self.assertIn(volume["secret"]["secretName"], SECRETS)
                    else:
                        self.assertIn("emptyDir", volume)
            mounts = spec["containers"][0]["volumeMounts"]
            self.assertEqual(
                {mount["name"] for mount in mounts},
                {volume["name"] for volume in spec["volumes"]},
            )
            self.check_files_are_mounted(folder, spec, mounts)

    def check_files_are_mounted(self, folder, spec, mounts):
        """Flags that name a file name one below a mount."""
        flags = tree.flags_of(spec["containers"][0])
        paths = [tree.config_of(folder)["model"]]
        paths += [value for value in flags.values() if value.startswith("/")]
        folders = [mount["mountPath"] for mount in mounts]
        for path in paths:
            with self.subTest(f"{folder} {path}"):
                self.assertTrue(
                    any((path + "/").startswith(f + "/") for f in folders)
                )

    def test_autoscaler(self):
        adapter = tree.load_yaml("kubernetes/prometheus-adapter/values.yaml")
        offered = {rule["name"]["as"] for rule in adapter["rules"]["custom"]}
        for folder in tree.WORKLOADS:
            (scaler,) = tree.of_kind(folder, "HorizontalPodAutoscaler")
            target = scaler["spec"]["scaleTargetRef"]
            (workload,) = tree.of_kind(folder, target["kind"])
            self.assertEqual(target["apiVersion"], workload["apiVersion"])
            self.assertEqual(target["name"], workload["metadata"]["name"])
            self.assertNotIn("replicas", workload["spec"])
            asked = {
                metric["pods"]["metric"]["name"]
                for metric in scaler["spec"]["metrics"]
            }
            self.assertEqual(asked, offered)
        for rule in adapter["rules"]["custom"]:
            name = rule["name"]["as"]
            self.assertTrue(rule["seriesQuery"].startswith(name + "{"))

    def test_job_label_is_that_of_monitoring(self):
        config = yaml.safe_load(
            (tree.ROOT / "monitoring/prometheus/prometheus.yml").read_text()
        )
        jobs = {job["job_name"] for job in config["scrape_configs"]}
        for folder in tree.WORKLOADS:
            (monitor,) = tree.of_kind(folder, "PodMonitor")
            (template,) = tree.pod_templates(folder)
            label = monitor["spec"]["jobLabel"]
            self.assertIn(template["metadata"]["labels"][label], jobs)
            (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
            self.assertEqual(endpoint["port"], "http")

    def test_routes(self):
        (route,) = tree.of_kind("gateway", "HTTPRoute")
        (pool,) = tree.of_kind("gateway", "InferencePool")
        services = {
            service["metadata"]["name"]
            for service in tree.of_kind("kubernetes/overlays/cpu", "Service")
        }
        paths = []
        for rule in route["spec"]["rules"]:
            paths += [match["path"]["value"] for match in rule["matches"]]
            for backend in rule["backendRefs"]:
                if backend.get("kind") == "InferencePool":
                    self.assertEqual(backend["name"], pool["metadata"]["name"])
                else:
                    self.assertIn(backend["name"], services)
        self.assertEqual(
            paths,
            [
                "/vllm.grpc.engine.VllmEngine",
                "/strata.v1.Inference",
                "/inference.GRPCInferenceService",
                "/grpc.health.v1.Health",
            ],
        )

    def test_endpoint_picker(self):
        config = tree.load_yaml("gateway/endpoint-picker.yaml")
        plugins = {plugin["type"] for plugin in config["plugins"]}
        used = {
            plugin["pluginRef"]
            for profile in config["schedulingProfiles"]
            for plugin in profile["plugins"]
        }
        used |= {p["pluginRef"] for p in config["requestHandler"]["parsers"]}
        self.assertEqual(used, plugins)

    def test_kserve_names_its_runtime(self):
        (runtime,) = tree.of_kind("kserve", "ClusterServingRuntime")
        (service,) = tree.of_kind("kserve", "InferenceService")
        model = service["spec"]["predictor"]["model"]
        self.assertEqual(model["runtime"], runtime["metadata"]["name"])
        formats = [f["name"] for f in runtime["spec"]["supportedModelFormats"]]
        self.assertIn(model["modelFormat"]["name"], formats)
        self.assertIn(
            model["protocolVersion"], runtime["spec"]["protocolVersions"]
        )


if __name__ == "__main__":
    unittest.main()
