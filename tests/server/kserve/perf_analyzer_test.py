"""Triton's perf_analyzer, unmodified, measures the server."""

import csv
import json
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import unittest

from kserve_server import MODEL, served

PERF_ANALYZER = pathlib.Path(sys.prefix) / "bin/perf_analyzer"
# It is linked with this, though it needs no GPU here.
CUDART = (
    pathlib.Path(sysconfig.get_path("purelib")) / "nvidia/cuda_runtime/lib"
)

PROMPT = {
    "text_input": ["The tree"],
    "stream": [True],
    "sampling_parameters": [
        json.dumps({"temperature": 0, "max_tokens": 6, "ignore_eos": True})
    ],
}


class PerfAnalyzerTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(served())

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def measure(self, data, *flags):
        """What the tool prints, and its table."""
        (self.folder / "data.json").write_text(json.dumps({"data": data}))
        # Which must not exist.
        (self.folder / "export.json").unlink(missing_ok=True)
        run = subprocess.run(
            [
                PERF_ANALYZER,
                "-m",
                MODEL,
                "-u",
                self.server.address,
                "-i",
                "grpc",
                "--async",
                "--streaming",
                f"--input-data={self.folder}/data.json",
                "--measurement-mode=count_windows",
                "--measurement-request-count=20",
                # On a busy machine one window may be many times another.
                "--stability-percentage=1000000000",
                "--max-trials=10",
                "-f",
                self.folder / "table.csv",
                f"--profile-export-file={self.folder}/export.json",
                *flags,
            ],
            env={**os.environ, "LD_LIBRARY_PATH": str(CUDART)},
            capture_output=True,
            text=True,
        )
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        with open(self.folder / "table.csv") as file:
            rows = list(csv.DictReader(file))
        return run.stdout, rows

    def measure_exported(self, *args):
        """The same and the export, measured anew where that breaks off.

        For an output that a response does not have the tool exports what its
        memory holds; where that is no finite number, it writes no further.
        """
        for _ in range(5):
            out, rows = self.measure(*args)
            export = (self.folder / "export.json").read_text(errors="replace")
            try:
                return out, rows, json.loads(export)
            except json.JSONDecodeError:
                self.assertNotIn('"version"', export[-200:], "has its end")
        self.fail("five exports in a row are broken off")

    def test_concurrency(self):
        out, rows, export = self.measure_exported(
            [PROMPT], "--concurrency-range=2:3"
        )
        self.assertCountEqual([row["Concurrency"] for row in rows], ["2", "3"])
        # The tool's order, which is of concurrency only where more is faster.
        rates = [float(row["Inferences/Second"]) for row in rows]
        self.assertGreater(rates[0], 0)
        self.assertEqual(rates, sorted(rates))
        self.assertIn("Server", out)  # by ModelStatistics
        for experiment in export["experiments"]:
            self.assertGreaterEqual(len(experiment["requests"]), 20)
            for request in experiment["requests"]:
                times = request["response_timestamps"]
                # One a token; a slow reader gets two of them at once.
                self.assertIn(len(times), range(1, 8))
                self.assertEqual(times, sorted(times))

    def test_request_rate_and_strategy(self):
        halves = {**PROMPT, "kv_strategy": ["every=2"]}
        _, rows = self.measure([PROMPT, halves], "--request-rate-range=50")
        self.assertEqual(len(rows), 1)


if __name__ == "__main__":
    unittest.main()
