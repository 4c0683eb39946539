#!/usr/bin/python3 -B
"""Tests keys and TLS of eval's connection against the real server."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))
import tiny_models  # noqa: E402
from evaluation import command_line, connection  # noqa: E402
from evaluation.connection import Connection, Credentials  # noqa: E402
from evaluation.failure import BadInput, Failure  # noqa: E402
from evaluation.server_process import ServerProcess  # noqa: E402

SERVER = tiny_models.ROOT / "server/strata_server"


def make_certificate(folder: pathlib.Path, name: str, *more: str):
    """NAME.pem and NAME.key."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
         f"/CN={name}", "-out", f"{name}.pem", "-keyout", f"{name}.key",
         *more], cwd=folder, check=True, capture_output=True)


class ConnectionTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        make_certificate(cls.folder, "ca")
        for name in ("server", "client"):
            make_certificate(
                cls.folder, name, "-CA", "ca.pem", "-CAkey", "ca.key",
                "-addext", "subjectAltName=IP:127.0.0.1",
                "-addext", "basicConstraints=critical,CA:FALSE")
        (cls.folder / "keys").write_text("# mine\n\n  alpha \nbeta\n")
        (cls.folder / "wrong").write_text("gamma\n")
        (cls.folder / "none").write_text("# nothing\n")
        (cls.folder / "odd").write_text("two words\n")
        cls.server = cls.enterClassContext(ServerProcess(SERVER, [
            f"--model={tiny_models.GOLDEN}", "--threads=1",
            "--kv_memory=4MiB", f"--tls_cert={cls.folder}/server.pem",
            f"--tls_key={cls.folder}/server.key",
            f"--tls_client_ca={cls.folder}/ca.pem",
            f"--api_key_file={cls.folder}/keys"]))

    def score(self, **files):
        credentials = Credentials(**{name: str(self.folder / file)
                                     for name, file in files.items()})
        with (mock.patch.object(connection, "CONNECT_SECONDS", 2),
              Connection(self.server.address, 1, credentials) as to):
            return to.score([1, 2, 3], "full").sum_logprob

    def test_key_and_certificate_open_the_server(self):
        self.assertLess(self.score(
            api_key_file="keys", tls_ca="ca.pem", tls_cert="client.pem",
            tls_key="client.key"), 0)

    def test_what_is_missing_is_said(self):
        own = {"tls_ca": "ca.pem", "tls_cert": "client.pem",
               "tls_key": "client.key"}
        for files, kind, message in (
                (own, Failure, "a key is needed"),
                (own | {"api_key_file": "wrong"}, Failure,
                 "the key is unknown"),
                ({"api_key_file": "keys"}, Failure,
                 r"or it wants TLS \(--tls_ca\)"),
                ({"api_key_file": "keys", "tls_ca": "ca.pem"}, Failure,
                 "or its certificate and ours do not fit"),
                ({"tls_cert": "client.pem"}, BadInput, "go together"),
                ({"tls_cert": "client.pem", "tls_key": "client.key"},
                 BadInput, "with --tls_ca"),
                ({"tls_ca": "nowhere"}, BadInput, "nowhere: cannot be read"),
                ({"api_key_file": "nowhere"}, BadInput, "cannot be read"),
                ({"api_key_file": "none"}, BadInput, "none: holds no key"),
                ({"api_key_file": "odd"}, BadInput, "printable ASCII")):
            with self.subTest(files), self.assertRaisesRegex(kind, message):
                self.score(**files)

    def test_own_servers_need_no_credentials(self):
        arguments = command_line.parser("eval", "").parse_args(
            ["--model=x", "--tls_ca=ca.pem"])
        with self.assertRaisesRegex(BadInput, "go with --target"):
            command_line.check(arguments)


if __name__ == "__main__":
    unittest.main()
