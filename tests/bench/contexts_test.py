#!/usr/bin/env python3
"""Tests contexts.py with programs in place of server and load client."""

import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))
import contexts  # noqa: E402
from evaluation.failure import BadInput  # noqa: E402

SERVER = """#!/bin/bash
echo "server $*" >>"$CALLS"
trap 'exit 0' TERM
echo "listening grpc=127.0.0.1:7 http=127.0.0.1:8"
while true; do sleep 0.01; done
"""

LOAD = """#!/bin/bash
echo "load $*" >>"$CALLS"
for argument in "$@"; do
  case "$argument" in
    --json=*) cp "$REPORT" "${argument#--json=}" ;;
  esac
done
"""

REPORT = {"kv_bytes_mean": 320 * 1000, "p50_ttft_ms": 500, "p99_ttft_ms": 900,
          "request_goodput": 0.5, "request_throughput": 2, "running_peak": 3,
          "output_throughput": 99.6}


class ContextsTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(
            self.enterContext(tempfile.TemporaryDirectory()))
        for name, text in (("server", SERVER), ("load", LOAD),
                           ("report", json.dumps(REPORT)), ("calls", "")):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)
        self.enterContext(mock.patch.dict(os.environ, {
            "CALLS": str(self.folder / "calls"),
            "REPORT": str(self.folder / "report")}))
        self.enterContext(contextlib.redirect_stderr(io.StringIO()))

    def arguments(self, *flags):
        return contexts.parse_arguments([
            "--model=m", f"--server={self.folder}/server",
            f"--load={self.folder}/load", f"--out={self.folder}/out", *flags])

    def test_pool_and_rate_follow_from_a_call_that_is_alone(self):
        arguments = self.arguments("--contexts=1000", "--room=3", "--calls=5")
        result = contexts.measure(arguments)
        calls = (self.folder / "calls").read_text().splitlines()
        pool = 3 * 1000 * (1000 + 256 + 64)
        servers = [line for line in calls if line.startswith("server")]
        self.assertEqual(len(servers), 5)  # probe, alone, three strategies
        for line in servers[1:]:
            self.assertIn(f"--kv_memory={pool} ", line + " ")
        loads = [line for line in calls if line.startswith("load")][2:]
        for line, strategy in zip(loads, contexts.STRATEGIES, strict=True):
            for flag in (f"--mix={strategy}", "--request_rate=2.0",
                         "--num_prompts=5", "--prompt_tokens=1000",
                         "--goodput=ttft:2000,tpot:200"):
                self.assertIn(f" {flag} ", line + " ")
        text = contexts.document(result)
        self.assertRegex(text, r"\| 1,000 +\| `every=4` +\| +4 \| +3 \| +99.6 "
                         r"\| +0.5 \| +0.9 \| +25% \|")

    def test_bad_flags(self):
        for flag, message in (("--contexts=8", "at least 16"),
                              ("--contexts=a", "at least 16"),
                              ("--room=0", "above 0"),
                              ("--out=/none/x", "folder is not there")):
            with self.subTest(flag), self.assertRaisesRegex(BadInput, message):
                self.arguments(flag)


if __name__ == "__main__":
    unittest.main()
