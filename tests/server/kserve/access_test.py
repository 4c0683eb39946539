"""tritonclient, unmodified, where the port wants TLS and keys."""

import pathlib
import queue
import subprocess
import tempfile
import unittest

import grpc
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from kserve_server import MODEL, flag, inputs, served, text_of

GOOD = {"authorization": "Bearer alpha"}


def make_certificate(stem: pathlib.Path, issuer: pathlib.Path | None = None):
    """Writes STEM.pem and STEM.key: an authority, or what `issuer` says of
    127.0.0.1.
    """
    command = [
        *("openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"),
        *("-pkeyopt", "ec_paramgen_curve:P-256", "-subj", f"/CN={stem.name}"),
        *("-out", f"{stem}.pem", "-keyout", f"{stem}.key"),
    ]
    if issuer is not None:
        command += [
            *("-CA", f"{issuer}.pem", "-CAkey", f"{issuer}.key"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-addext", "basicConstraints=critical,CA:FALSE"),
        ]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


class AccessTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.folder = pathlib.Path(folder)
        authority = cls.folder / "authority"
        make_certificate(authority)
        for name in ("server", "client"):
            make_certificate(cls.folder / name, authority)
        keys = cls.folder / "keys"
        keys.write_text("alpha\n")
        cls.server = cls.enterClassContext(
            served(
                f"--tls_cert={cls.folder}/server.pem",
                f"--tls_key={cls.folder}/server.key",
                f"--tls_client_ca={authority}.pem",
                f"--api_key_file={keys}",
            )
        )
        cls.client = cls.connect()
        cls.addClassCleanup(cls.client.close)

    @classmethod
    def connect(cls, shows_certificate: bool = True):
        own = (
            {
                "private_key": f"{cls.folder}/client.key",
                "certificate_chain": f"{cls.folder}/client.pem",
            }
            if shows_certificate
            else {}
        )
        return triton.InferenceServerClient(
            cls.server.address,
            ssl=True,
            root_certificates=f"{cls.folder}/authority.pem",
            **own,
        )

    def assert_fails(self, code: str, pattern: str, call, *args, **kwargs):
        with self.assertRaisesRegex(InferenceServerException, pattern) as got:
            call(*args, **kwargs)
        self.assertEqual(got.exception.status(), f"StatusCode.{code}")

    def start_stream(self, headers) -> queue.Queue:
        """What the responses to it will be put in."""
        answers = queue.Queue()
        self.client.start_stream(
            lambda result, error: answers.put((result, error)),
            headers=headers,
        )
        return answers

    def test_a_key_in_the_headers_opens_all(self):
        for headers in (GOOD, {"x-api-key": "alpha"}):
            result = self.client.infer(
                MODEL,
                inputs("The tree", flag("exclude_input_in_output")),
                headers=headers,
            )
            self.assertTrue(self.client.is_server_ready(headers=headers))
            self.client.get_model_config(MODEL, headers=headers)
            self.client.get_inference_statistics(MODEL, headers=headers)
            answers = self.start_stream(headers)
            self.client.async_stream_infer(
                MODEL, inputs("The tree", flag("exclude_input_in_output"))
            )
            streamed, error = answers.get(timeout=60)
            self.client.stop_stream()
            self.assertIsNone(error)
            self.assertEqual(text_of(streamed), text_of(result))

    def test_without_a_key_nothing_is_open(self):
        for headers, pattern in (
            (None, "a key is needed"),
            ({"authorization": "Bearer beta"}, "the key is unknown"),
            ({"x-api-key": "alph"}, "the key is unknown"),
        ):
            for call, args in (
                (self.client.infer, (MODEL, inputs("A"))),
                (self.client.is_server_live, ()),
                (self.client.is_server_ready, ()),
                (self.client.is_model_ready, (MODEL,)),
                (self.client.get_server_metadata, ()),
                (self.client.get_model_metadata, (MODEL,)),
                (self.client.get_model_config, (MODEL,)),
                (self.client.get_inference_statistics, (MODEL,)),
                (self.client.get_model_repository_index, ()),
                (self.client.unload_model, (MODEL,)),
            ):
                self.assert_fails(
                    "UNAUTHENTICATED", pattern, call, *args, headers=headers
                )
            _, error = self.start_stream(headers).get(timeout=60)
            self.client.stop_stream()
            self.assertEqual(error.status(), "StatusCode.UNAUTHENTICATED")
            self.assertRegex(str(error), pattern)

    def test_health_needs_no_key(self):
        credentials = grpc.ssl_channel_credentials(
            (self.folder / "authority.pem").read_bytes(),
            (self.folder / "client.key").read_bytes(),
            (self.folder / "client.pem").read_bytes(),
        )
        address = self.server.address
        with grpc.secure_channel(address, credentials) as channel:
            check = channel.unary_unary("/grpc.health.v1.Health/Check")
            self.assertEqual(check(b""), b"\x08\x01")  # SERVING

    def test_a_key_does_not_stand_for_a_certificate(self):
        for client in (
            self.connect(shows_certificate=False),
            triton.InferenceServerClient(self.server.address),
        ):
            with client:
                self.assert_fails(
                    "UNAVAILABLE", "", client.is_server_live, headers=GOOD
                )


if __name__ == "__main__":
    unittest.main()
