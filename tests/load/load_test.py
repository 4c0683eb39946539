#!/usr/bin/python3 -B
"""Tests the load client and the soak against the real server.

No time decides: what is checked are counts, invariants and exit statuses.
"""

import contextlib
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2]))
from evaluation.server_process import ServerProcess  # noqa: E402

ROOT = pathlib.Path.cwd()  # of Bazel's runfiles
LOAD = ROOT / "tests/load/strata_load"
SERVER = ROOT / "server/strata_server"
MODEL = ROOT / "tests/golden/llama-tied"
FLAGS = (f"--model={MODEL}", "--threads=1", "--max_sequences=8")


def run_load(*flags, seconds=120):
    """Exit status, standard output, standard error."""
    done = subprocess.run([LOAD, *map(str, flags)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=seconds,
                          check=False)
    return done.returncode, done.stdout, done.stderr


@contextlib.contextmanager
def running_server(*flags):
    """The flags that lead a load client to a server."""
    with ServerProcess(SERVER, [*FLAGS, *flags]) as server:
        yield [f"--address={server.address}",
               f"--metrics={server.http_address}"]


class LoadTest(unittest.TestCase):

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory()))

    def load(self, *flags) -> dict:
        path = self.folder / "out.json"
        status, _, errors = run_load(f"--json={path}", *flags)
        self.assertEqual(status, 0, errors)
        return json.loads(path.read_text())

    def test_a_trace_s_shared_blocks_are_found_in_the_cache(self):
        trace = self.folder / "trace.jsonl"
        status, _, errors = run_load(
            "--make_trace=mooncake", f"--trace={trace}", "--num_prompts=50")
        self.assertEqual(status, 0, errors)
        with running_server("--kv_memory=8MiB") as reach:
            report = self.load(f"--trace={trace}", "--length_scale=0.01",
                               "--time_scale=0.01", "--num_prompts=40", *reach)
            self.assertEqual(report["completed"], 40)
            self.assertEqual(report["violations"], [])
            self.assertGreater(report["cached_tokens"], 0)
            long = self.load(f"--trace={trace}", "--num_prompts=3",
                             "--time_scale=0", *reach)
            self.assertEqual(long["cut_prompts"], 3)
            self.assertEqual(long["completed"], 3)

    def test_a_conversation_needs_a_tokenizer(self):
        trace = self.folder / "trace.json"
        status, _, errors = run_load(
            "--make_trace=sharegpt", f"--trace={trace}", "--num_prompts=3")
        self.assertEqual(status, 0, errors)
        with running_server() as reach:
            status, _, errors = run_load(f"--trace={trace}", *reach)
        self.assertEqual(status, 1)
        self.assertIn("cannot be tokenized", errors)

    def test_capacity_is_found_for_each_strategy(self):
        # Limits that anything meets: the search ends at the highest rate.
        with running_server("--kv_memory=8MiB") as reach:
            report = self.load("--find_capacity", "--mix=full,every=2",
                               "--goodput=e2el:600000", "--lowest_rate=10",
                               "--highest_rate=20", "--probe_seconds=1",
                               "--prompt_tokens=9", "--output_tokens=3", *reach)
            for found in report["capacity"]:
                self.assertEqual(found["request_rate"], 20)
                self.assertFalse(found["is_bounded"])
                self.assertEqual([probe["request_rate"]
                                  for probe in found["probes"]], [10, 20, 20])
            # Limits that nothing meets.
            report = self.load("--find_capacity", "--goodput=ttft:0.000001",
                               "--lowest_rate=50", "--highest_rate=50",
                               "--probe_seconds=0.2", *reach)
            self.assertEqual(report["capacity"][0]["request_rate"], 0)

    def test_another_s_calls_show_in_the_counters(self):
        with running_server() as reach:
            other = subprocess.Popen(
                [LOAD, reach[0], "--num_prompts=100000"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL)
            page = "http://" + reach[1].partition("=")[2] + "/metrics"
            while not re.search(
                    rb'finished_total\{.*"length".*\} [1-9]',
                    urllib.request.urlopen(page).read()):
                time.sleep(0.05)
            status, _, errors = run_load("--num_prompts=20", *reach)
            other.terminate()  # as Ctrl-C: it cancels its calls and reports
            self.assertEqual(other.wait(), 0)
        self.assertEqual(status, 1)
        self.assertIn("strata load: ", errors)

    def test_wrong_flags_and_files_end_early(self):
        (self.folder / "bad.jsonl").write_text("{}\n")
        for flags, words in (
                (["--request_rate=0"], "--request_rate=0: must be a number"),
                (["--json=/nowhere/x"], "/nowhere/x: cannot be written"),
                (["--report=/proc/x"], "cannot be written"),
                (["--make_trace=csv", "--trace=/tmp/x"], "must be mooncake"),
                (["--make_trace=mooncake"], "needs --trace"),
                (["word"], "takes flags only")):
            status, _, errors = run_load(*flags)
            self.assertEqual(status, 2, flags)
            self.assertIn(words, errors)
            self.assertEqual(len(errors.splitlines()), 1)
        with running_server() as reach:
            for name, words in (("bad.jsonl", "line 1: timestamp"),
                                ("none.jsonl", "cannot be read")):
                status, _, errors = run_load(
                    f"--trace={self.folder / name}", *reach)
                self.assertEqual(status, 2)
                self.assertIn(words, errors)
            status, _, errors = run_load(reach[0], "--metrics=127.0.0.1:1")
            self.assertEqual(status, 1)
            self.assertIn("does not answer", errors)

    def test_a_short_soak_holds_its_invariants(self):
        folder = self.folder / "soak"
        done = subprocess.run(
            [sys.executable, "-B", ROOT / "tests/load/soak.py", "--seconds=10",
             f"--model={MODEL}", "--kv_memory=480KiB", "--threads=1",
             "--max_memory_growth_mib=0", f"--report={folder}",
             f"--server={SERVER}", f"--load={LOAD}"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads((folder / "report.json").read_text())
        self.assertEqual(report["violations"], [])
        self.assertEqual(report["failed"], 0)
        self.assertGreater(report["completed"], 0)
        self.assertEqual(len(report["details"]["ttfts"]),
                         report["num_prompts"])
        if importlib.util.find_spec("matplotlib"):
            subprocess.run([sys.executable, "-B",
                            ROOT / "tests/load/report.py", folder], check=True)
            self.assertIn("All that were looked at hold.",
                          (folder / "report.md").read_text())
            self.assertGreater((folder / "report.png").stat().st_size, 10000)


if __name__ == "__main__":
    unittest.main()
