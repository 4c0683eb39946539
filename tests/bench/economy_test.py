#!/usr/bin/env python3
"""Tests economy.py with programs in place of server and load client."""
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
import economy  # noqa: E402
import economy_machine  # noqa: E402
import economy_tables  # noqa: E402
from evaluation.failure import BadInput, Failure  # noqa: E402

SERVER = """#!/bin/bash
echo "server $*" >>"$CALLS"
[[ $* != *--threads=99* ]] || { echo "no such threads" >&2; exit 1; }
trap 'echo stopped >>"$CALLS"; exit 0' TERM
echo "listening grpc=127.0.0.1:7 http=127.0.0.1:8"
while true; do sleep 0.01; done
"""

LOAD = """#!/bin/bash
echo "load $*" >>"$CALLS"
for argument in "$@"; do
  case "$argument" in
    --json=*) cp "$REPORT" "${argument#--json=}" ;;
    --mix=broken) exit 1 ;;
  esac
done
"""

GROUP = {"completed": 4, "p50_ttft_ms": 1234.4, "p99_ttft_ms": 5678, "prefix_hit_rate": 0.375}
REPORT = {**GROUP, "request_goodput": 0.5, "request_throughput": 2, "output_throughput": 99.6, "running_mean": 2.25,
          "running_peak": 3, "switches": 5, "preemptions": 6, "ended_under": {"full": 1, "every=4": 3},
          "by_strategy": {"full": GROUP, "every=2": {**GROUP, "completed": 3}}}


class EconomyTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        for name, text in (("server", SERVER), ("load", LOAD), ("report", json.dumps(REPORT)), ("calls", "")):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)
        environment = {"CALLS": str(self.folder / "calls"), "REPORT": str(self.folder / "report")}
        self.enterContext(mock.patch.dict(os.environ, environment))
        self.enterContext(contextlib.redirect_stderr(io.StringIO()))

    def arguments(self, *flags):
        with mock.patch.object(sys, "argv", ["economy", "--model=m", f"--server={self.folder}/server",
                                             f"--load={self.folder}/load", *flags]):
            return economy.parse_arguments()

    def calls(self, of):
        return [line for line in (self.folder / "calls").read_text().splitlines() if line.startswith(of)]

    def test_every_configuration_gets_the_same_calls_from_a_fresh_server(self):
        result = economy.measure(self.arguments("--rates=2,0.5", "--seconds=3", "--seed=9"))
        self.assertEqual([(run["rate"], run["configuration"]) for run in result["load"]],
                         [(rate, name) for rate in (0.5, 2) for name in economy.CONFIGURATIONS])
        loads = self.calls("load")
        self.assertEqual(len(loads), 6 + 6)
        for index, mix in enumerate(["full", "every=4", "full>every=4"]):
            self.assertIn(f"--mix={mix} --request_rate=2.0 --num_prompts=6 ", loads[3 + index])
        self.assertTrue(all("--seed=9" in load and "--address=127.0.0.1:7" in load for load in loads))
        self.assertEqual(sum("--bypass_prefix_cache=true" in load for load in loads), 3)
        self.assertEqual(len(self.calls("stopped")), len(loads))
        self.assertFalse(any("--admission" in call for call in self.calls("server")))

    def test_optimistic_admission_adds_configurations(self):
        result = economy.measure(self.arguments("--rates=1", "--seconds=1", "--admission=optimistic"))
        self.assertEqual([run["configuration"] for run in result["load"]],
                         [name + end for end in ("", ", optimistic") for name in economy.CONFIGURATIONS])
        self.assertEqual(sum("--admission=optimistic" in call for call in self.calls("server")), 3)

    def test_what_fails_ends_the_run_and_stops_the_server(self):
        with self.assertRaisesRegex(Failure, "no such threads"):
            economy.measure(self.arguments("--threads=99"))
        with mock.patch.dict(economy.CONFIGURATIONS, {"full": "broken"}):
            with self.assertRaisesRegex(Failure, "load client ended with status 1"):
                economy.measure(self.arguments())
        self.assertEqual(len(self.calls("stopped")), 1)

    def test_flags_out_of_range_are_refused(self):
        for flags in (["--rates=1,x"], ["--rates=0,1"], ["--seconds=0"], ["--prefix_calls=0"], ["--rate=1"]):
            with self.assertRaises(BadInput):
                self.arguments(*flags)

    def test_quick_does_not_overwrite_the_documented_figures(self):
        self.assertNotIn("docs", self.arguments("--quick").out.parts)
        self.assertEqual(self.arguments().out.parts[-2:], ("docs", "economy"))
        (self.folder / "b.json").write_text("{}")
        self.assertEqual(self.arguments(f"--from_json={self.folder}/b.json").out, self.folder / "b")
        with self.assertRaisesRegex(BadInput, "is not there"):
            self.arguments(f"--from_json={self.folder}/none.json")

    def test_other_flags_win_over_quick(self):
        self.assertEqual(self.arguments("--quick", "--rates=7").rates, [7])

    def test_says_when_the_machine_was_not_quiet(self):
        result = economy.measure(self.arguments("--rates=1", "--seconds=1"))
        reports = list(economy.reports(result))
        self.assertEqual(len(reports), 3 + 6)
        for others, warns in ((0.04, False), (0.51, True)):
            for report in reports:
                report["cpu_share_of_others"] = 0
            reports[-1]["cpu_share_of_others"] = others
            with contextlib.redirect_stdout(io.StringIO()) as shown:
                economy.show(result)
            self.assertEqual("others used up to 51%" in shown.getvalue(), warns)

    def test_share_of_others_is_of_all_cores(self):
        for begin, end, share in ((7, 12, 0.5 / os.cpu_count()), (7, 6.9, 0), (7, 1e6, 1)):
            with mock.patch.object(economy_machine.OthersWatch, "_now", side_effect=[(100, begin), (110, end)]):
                self.assertAlmostEqual(economy_machine.OthersWatch().share(), share)

    def test_tables(self):
        self.assertEqual(
            economy_tables.load_table([{"rate": 1.5, "configuration": "full", "report": REPORT}]).splitlines()[2],
            "| 1.5     | full          |       1,234 | 5,678 |      0.50 |  25% |   100 |      2.2 |    3 |        5 "
            "|         6 |          25% |")
        table = economy_tables.prefix_table([{"mix": "m", "cached": REPORT, "bypassed": {**REPORT, "p99_ttft_ms": 7}}])
        self.assertEqual([[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]],
                         [["m", "full", "4", "37.5%", "1,234", "5,678", "1,234", "5,678"],
                          ["m", "every=2", "3", "37.5%", "1,234", "5,678", "1,234", "5,678"],
                          ["m", "all", "4", "37.5%", "1,234", "5,678", "1,234", "7"]])
        nothing = {"by_strategy": {"full": {**GROUP, "completed": 0}}}
        row = economy_tables.prefix_table([{"mix": "m", "cached": nothing, "bypassed": nothing}]).splitlines()[2]
        self.assertEqual(row.split()[1::2], ["m", "full", "0", "-", "-", "-", "-", "-"])
        self.assertEqual(economy_tables.percent(0, 0), "-")


if __name__ == "__main__":
    unittest.main()
