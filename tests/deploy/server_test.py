"""The server takes the arguments and the config of the manifests, answers their
probes, and has the metrics of the autoscaler."""

import re
import subprocess
import unittest
import urllib.request

import grpc

import tree
from served_pod import served_pod

SERVING = b"\x08\x01"  # HealthCheckResponse
HEALTH = "/grpc.health.v1.Health/Check"


def health_request(service: str) -> bytes:
    name = service.encode()
    return b"\x0a" + bytes([len(name)]) + name


def check_health(address: str, service: str) -> bytes:
    """What a kubelet asks: no TLS, no metadata."""
    with grpc.insecure_channel(address) as channel:
        check = channel.unary_unary(HEALTH)
        return check(health_request(service), timeout=30)


def get(address: str, page: str) -> tuple[int, str]:
    with urllib.request.urlopen(f"http://{address}{page}") as answer:
        return answer.status, answer.read().decode()


def probes(folder: str):
    for template in tree.pod_templates(folder):
        (server,) = template["spec"]["containers"]
        for kind in ("startup", "readiness", "liveness"):
            yield kind, server[kind + "Probe"]


class PlainTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.pod = cls.enterClassContext(
            served_pod("kubernetes/overlays/cpu")
        )

    def test_probes(self):
        for folder in ("kubernetes/overlays/cpu", "kserve"):
            for kind, probe in probes(folder):
                with self.subTest(f"{folder} {kind}"):
                    service = probe["grpc"]["service"]
                    answer = check_health(self.pod.address, service)
                    self.assertEqual(answer, SERVING)

    def test_probe_of_an_unknown_service_fails(self):
        with self.assertRaises(grpc.RpcError) as caught:
            check_health(self.pod.address, "readyness")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_health_of_the_image(self):
        script = tree.DEPLOY / "image/strata_health"
        port = self.pod.http_address.rpartition(":")[2]
        for argument, status in (("ready", 0), ("live", 0), ("other", 1)):
            run = subprocess.run([script, argument, port], capture_output=True)
            self.assertEqual(run.returncode, status, argument)
        run = subprocess.run([script, "ready", "1"], capture_output=True)
        self.assertNotEqual(run.returncode, 0)  # nobody listens there

    def test_metrics_of_the_autoscaler(self):
        _, page = get(self.pod.http_address, "/metrics")
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
        _, page = get(self.pod.http_address, "/metrics")
        self.assertIn(f'model_name="{name}"', page)


def self_signed(name: str) -> tuple[bytes, bytes]:
    """A key and a certificate that issues itself, by openssl."""
    key = subprocess.run(
        ["openssl", "genpkey", "-algorithm", "EC"]
        + ["-pkeyopt", "ec_paramgen_curve:P-256"],
        capture_output=True,
        check=True,
    ).stdout
    certificate = subprocess.run(
        ["openssl", "req", "-x509", "-key", "/dev/stdin", "-days", "1"]
        + ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"],
        input=key,
        capture_output=True,
        check=True,
    ).stdout
    return key, certificate


class TlsTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        key, cls.certificate = self_signed("server")
        cls.client_key, cls.client_certificate = self_signed("client")
        cls.pod = cls.enterClassContext(
            served_pod(
                "kubernetes/overlays/tls",
                {
                    "/etc/strata-tls/tls.crt": cls.certificate,
                    "/etc/strata-tls/tls.key": key,
                    "/etc/strata-tls/ca.crt": cls.client_certificate,
                    "/etc/strata-keys/api-keys": b"# of the team\ncaller-key\n",
                    "/etc/strata-keys/admin-keys": b"admin-key\n",
                },
            )
        )

    def call(self, method, request=b"", key=None, with_certificate=True):
        """The status of a call over TLS."""
        credentials = grpc.ssl_channel_credentials(
            root_certificates=self.certificate,
            private_key=self.client_key if with_certificate else None,
            certificate_chain=(
                self.client_certificate if with_certificate else None
            ),
        )
        metadata = [("authorization", f"Bearer {key}")] if key else []
        with grpc.secure_channel(self.pod.address, credentials) as channel:
            try:
                channel.unary_unary(method)(
                    request, timeout=30, metadata=metadata
                )
            except grpc.RpcError as error:
                return error.code()
        return grpc.StatusCode.OK

    def test_probes(self):
        for kind, probe in probes("kubernetes/overlays/tls"):
            with self.subTest(kind):
                status, _ = get(self.pod.http_address, probe["httpGet"]["path"])
                self.assertEqual(status, 200)

    def test_grpc_probe_would_fail(self):
        with self.assertRaises(grpc.RpcError):
            check_health(self.pod.address, "readiness")

    def test_certificates_and_keys(self):
        code = grpc.StatusCode
        model = "/strata.v1.Inference/GetModel"
        policy = "/strata.v1.Admin/SetPolicy"
        ready = health_request("readiness")
        self.assertEqual(self.call(HEALTH, ready), code.OK)
        self.assertEqual(
            self.call(HEALTH, ready, with_certificate=False), code.UNAVAILABLE
        )
        self.assertEqual(self.call(model), code.UNAUTHENTICATED)
        self.assertEqual(self.call(model, key="caller-key"), code.OK)
        self.assertEqual(
            self.call(policy, key="caller-key"), code.PERMISSION_DENIED
        )
        self.assertEqual(self.call(policy, key="admin-key"), code.OK)


if __name__ == "__main__":
    unittest.main()
