"""The server takes the configuration of the manifests, answers their probes,
has the metrics of the autoscaler, and drains in time."""

import pathlib
import re
import signal
import subprocess
import tempfile
import unittest
import urllib.request

import grpc

import tree

MODEL = pathlib.Path("tests/golden/llama-tied").resolve()
SERVING = b"\x08\x01"  # HealthCheckResponse


def check_health(port: int, service: str) -> bytes:
    """What a kubelet asks: no metadata, within a second."""
    name = service.encode()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        return check(b"\x0a" + bytes([len(name)]) + name, timeout=1)


def get(port: int, page: str) -> tuple[int, str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{page}") as answer:
        return answer.status, answer.read().decode()


class ServerTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        (config,) = tree.of_kind("kubernetes/overlays/cpu", "ConfigMap")
        path = pathlib.Path(cls.folder.name) / "strata.yaml"
        path.write_text(config["data"]["strata.yaml"])
        cls.log = open(pathlib.Path(cls.folder.name) / "log", "w+")
        cls.server = subprocess.Popen(
            [
                tree.SERVER,
                f"--config={path}",
                "--threads=1",
                # In place of what a pod has to itself.
                f"--model={MODEL}",
                "--host=127.0.0.1",
                "--grpc_port=0",
                "--http_port=0",
                "--kv_memory=16MiB",
            ],
            stdout=subprocess.PIPE,
            stderr=cls.log,
            text=True,
        )
        line = cls.server.stdout.readline()
        ports = re.fullmatch(
            r"listening grpc=127\.0\.0\.1:(\d+) http=127\.0\.0\.1:(\d+)\n",
            line,
        )
        if ports is None:
            cls.log.seek(0)
            raise AssertionError(f"the server failed: {cls.log.read()}")
        cls.grpc_port, cls.http_port = map(int, ports.groups())

    @classmethod
    def tearDownClass(cls):
        cls.server.send_signal(signal.SIGTERM)
        status = cls.server.wait(timeout=20)  # idle: nothing to wait for
        cls.server.stdout.close()
        cls.log.close()
        cls.folder.cleanup()
        if status != 0:
            raise AssertionError(f"exit status {status} after SIGTERM")

    def test_probes(self):
        for folder in tree.KUSTOMIZATIONS:
            for template in tree.pod_templates(folder):
                (server,) = template["spec"]["containers"]
                for kind in ("startup", "readiness", "liveness"):
                    probe = server[kind + "Probe"]
                    with self.subTest(f"{folder} {kind}"):
                        if "grpc" in probe:
                            answer = check_health(
                                self.grpc_port, probe["grpc"]["service"]
                            )
                            self.assertEqual(answer, SERVING)
                        else:
                            status, _ = get(
                                self.http_port, probe["httpGet"]["path"]
                            )
                            self.assertEqual(status, 200)

    def test_probe_of_an_unknown_service_fails(self):
        with self.assertRaises(grpc.RpcError) as caught:
            check_health(self.grpc_port, "readyness")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_health_of_the_image(self):
        script = tree.DEPLOY / "image/strata_health"
        for argument, status in (("ready", 0), ("live", 0), ("other", 1)):
            run = subprocess.run(
                [script, argument, str(self.http_port)], capture_output=True
            )
            self.assertEqual(run.returncode, status, argument)
        run = subprocess.run([script, "ready", "1"], capture_output=True)
        self.assertNotEqual(run.returncode, 0)  # nobody listens there

    def test_metrics_of_the_autoscaler(self):
        _, page = get(self.http_port, "/metrics")
        series = set(re.findall(r"^([a-z_:]+)[ {]", page, re.MULTILINE))
        adapter = tree.load_yaml("kubernetes/prometheus-adapter/values.yaml")
        for rule in adapter["rules"]["custom"]:
            self.assertIn(rule["name"]["as"], series)
        # What an endpoint picker reads unless told otherwise.
        self.assertLessEqual(
            {
                "vllm:num_requests_waiting",
                "vllm:num_requests_running",
                "vllm:kv_cache_usage_perc",
                "vllm:cache_config_info",
            },
            series,
        )

    def test_name_of_the_model(self):
        name = tree.config_of("kubernetes/overlays/cpu")["served_model_name"]
        _, page = get(self.http_port, "/metrics")
        self.assertIn(f'model_name="{name}"', page)


if __name__ == "__main__":
    unittest.main()
