#!/usr/bin/python3 -B
"""Tests speed.py with programs in place of engines, and its table."""

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
import speed  # noqa: E402
import speed_tables  # noqa: E402
from evaluation import command_line  # noqa: E402

FACTS = {"weight_format": "Q4_1", "weight_bytes": 100_000_000,
         "kv_read_bytes_per_token": 10_000, "max_context": 8192}

# Rates rise from run to run; the peer's are a third.
ENGINE = """#!/bin/bash
echo "$*" >>"$CALLS"
who=own rate=300
if [[ $* == *llama_cpp_peer* ]]; then who=peer rate=100; fi
echo '%s'
while read -r line; do
  echo "$who $line" >>"$CALLS"
  if [[ $line == "$BROKEN"* ]]; then echo "out of luck" >&2; exit 3; fi
  if [[ $line == read_bandwidth ]]; then echo 50.0; else echo $rate.5; fi
  rate=$((rate + 1))
done
""" % json.dumps({**FACTS, "llama_cpp_python": "1.2.3"})

REQUANTIZE = """#!/bin/bash
echo "$*" >>"$CALLS"
if [[ -n $REFUSE ]]; then
  echo "strata requantize: rows of 31" >&2; exit 2
fi
for argument in "$@"; do
  [[ $argument == --out=* ]] && touch "${argument#--out=}"
done
"""


def result(**changes):
    rates = {"full": [300.0, 360.4, 310.0], "every=2": [400.0] * 3,
             "llama.cpp": [90.1, 100.2, 95.0]}
    return {"date": "2026-01-02T03:04:05+00:00", "model": "m.gguf",
            "machine": {"cpu": "Z80", "cores": 2, "threads": 1,
                        "read_gb_per_s": 50.0},
            "peer": "llama.cpp (llama-cpp-python 1.2.3)",
            "strategies": ["full", "every=2"], "reps": 3, "quick": False,
            "formats": {"q4_0": {
                "facts": FACTS, "cpu_share_of_others": 0.01,
                "works": {"decode_1x1000": rates, "decode_16x256": rates,
                          "prefill_512": rates}}}, **changes}


class TableTest(unittest.TestCase):

    def test_best_of_runs_ratio_and_share_of_the_read_bandwidth(self):
        rows = speed_tables.table(result()).splitlines()
        cells = [[cell.strip() for cell in row.strip("|").split("|")]
                 for row in rows]
        self.assertEqual(cells[0], ["format", "work", "`full`", "`every=2`",
                                    "llama.cpp", "ratio", "of read"])
        # 110 MB a token * 360.4 tokens a second of 50 GB/s.
        self.assertEqual(cells[2], [
            "Q4_0", "decode, 1 stream, context 1000", "360", "400", "100",
            "3.60x", "79%"])
        self.assertEqual(cells[3][1:], ["decode, 16 streams, context 256",
                                        "360", "400", "100", "3.60x", ""])
        self.assertEqual(cells[4][1], "prefill 512")
        self.assertEqual(len(cells), 5)

    def test_without_a_peer(self):
        text = speed_tables.document(result(peer=None, reps=1))
        self.assertNotIn("ratio", text)
        self.assertNotIn("llama", text)
        self.assertIn("best of 1 run.", text)

    def test_document_names_machine_date_and_what_spoils_it(self):
        text = speed_tables.document(result())
        for part in ("m.gguf on Z80, 2 cores, 1 threads", "50.0 GB/s",
                     "2026-01-02", "llama-cpp-python 1.2.3"):
            self.assertIn(part, text)
        self.assertNotIn("relied", text)
        self.assertNotIn("nothing", text)
        noisy = result(quick=True)
        noisy["formats"]["q4_0"]["cpu_share_of_others"] = 0.31
        text = speed_tables.document(noisy)
        self.assertIn("up to 31% of the cores", text)
        self.assertIn("mean nothing", text)


class SpeedTest(unittest.TestCase):

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        for name, text in (("engine", ENGINE), ("peer", ENGINE),
                           ("requantize", REQUANTIZE), ("m.gguf", ""),
                           ("calls", "")):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)
        self.enterContext(mock.patch.dict(os.environ, {
            "CALLS": str(self.folder / "calls"), "BROKEN": "none",
            "REFUSE": ""}))
        # Files that are converted stay in the test's folder.
        self.enterContext(mock.patch.object(speed, "ROOT", self.folder))

    def run_speed(self, *flags):
        """Exit status, standard output, standard error."""
        out, err = io.StringIO(), io.StringIO()
        argv = ["speed", f"--model={self.folder}/m.gguf",
                f"--engine={self.folder}/engine",
                f"--peer_python={self.folder}/peer",
                f"--requantize_python={self.folder}/requantize",
                f"--out={self.folder}/out.x", *flags]
        with (mock.patch.object(sys, "argv", argv),
              contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)):
            status = command_line.run("bench speed", speed.main)
        return status, out.getvalue(), err.getvalue()

    def calls(self):
        return (self.folder / "calls").read_text().splitlines()

    def test_engines_are_asked_in_turn_about_every_format(self):
        status, out, err = self.run_speed("--peer", "--formats=bf16,q4_0",
                                          "--reps=2", "--threads=7")
        self.assertEqual((status, err.count("decode, 16 streams")), (0, 2), err)
        made = json.loads((self.folder / "out.x.json").read_text())
        self.assertEqual(list(made["formats"]), ["bf16", "q4_0"])
        self.assertEqual(list(made["formats"]["bf16"]["works"]),
                         list(speed.WORKS))
        self.assertEqual(made["machine"]["read_gb_per_s"], 50.0)
        self.assertEqual(made["formats"]["q4_0"]["works"]["decode_1x64"], {
            "full": [301.5, 306.5], "every=2": [302.5, 304.5],
            "every=4": [303.5, 305.5], "llama.cpp": [100.5, 101.5]})
        self.assertEqual(out, (self.folder / "out.x.md").read_text())
        calls = self.calls()
        self.assertIn("--type=bf16", calls[0])
        self.assertEqual(calls[3:12], [
            "own read_bandwidth",
            "own decode_1x64 full", "own decode_1x64 every=2",
            "own decode_1x64 every=4", "peer decode_1x64",
            "own decode_1x64 every=2", "own decode_1x64 every=4",
            "peer decode_1x64", "own decode_1x64 full"])
        self.assertEqual(sum("--threads=7" in call for call in calls), 4)
        self.assertEqual(list((self.folder / ".cache").iterdir()), [])

    def test_quick_measures_less_and_without_a_peer_none_is_started(self):
        status, out, _ = self.run_speed("--quick")
        self.assertEqual(status, 0)
        self.assertEqual(out.count("| Q4_1"), len(speed.QUICK_WORKS))
        self.assertFalse([call for call in self.calls() if "peer" in call])

    def test_works_beyond_the_model_are_left_out(self):
        arguments = mock.Mock(quick=False)
        bench = speed.Bench(arguments)
        self.assertEqual(bench._works(4160), [
            work for work in speed.WORKS if "4096" not in work])
        self.assertEqual(bench._works(4161), list(speed.WORKS))

    def test_table_of_an_earlier_run(self):
        earlier = self.folder / "earlier.json"
        earlier.write_text(json.dumps(result()))
        status, out, _ = self.run_speed(f"--from_json={earlier}")
        self.assertEqual((status, out), (0, speed_tables.document(result())))
        self.assertEqual(self.calls(), [])
        for text in ("{}", "[]", "x", '{"machine": 3}'):
            earlier.write_text(text)
            status, _, err = self.run_speed(f"--from_json={earlier}")
            self.assertEqual(status, 2, text)
            self.assertIn("holds no results", err)

    def test_failures_are_one_line(self):
        for name, what, status, part in (
                ("BROKEN", "decode_1x1024 every=2", 1, "status 3: out of luck"),
                ("REFUSE", "1", 2, "bench speed: rows of 31")):
            with mock.patch.dict(os.environ, {name: what}):
                got, out, err = self.run_speed("--formats=q8_0")
            self.assertEqual((got, out), (status, ""))
            self.assertIn(part, err.splitlines()[-1])
            self.assertNotIn("Traceback", err)

    def test_wrong_flags_start_nothing(self):
        for flag, part in (("--formats=q5_0", "must be some of q4_0"),
                           ("--formats=q4_0,q4_0", "must be some of"),
                           ("--formats=", "must be some of"),
                           ("--reps=0", "number above 0"),
                           ("--threads=x", "number above 0"),
                           ("--model=gone.gguf", "must be a .gguf file"),
                           ("--from_json=gone", "is not there"),
                           ("--out=/gone/x", "folder is not there"),
                           ("--pear", "--pear")):
            status, _, err = self.run_speed(flag)
            self.assertEqual(status, 2, flag)
            self.assertIn(part, err)
            self.assertEqual(err.count("\n"), 1)
        self.assertEqual(self.calls(), [])


if __name__ == "__main__":
    unittest.main()
