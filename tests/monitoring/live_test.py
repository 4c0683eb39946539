#!/usr/bin/python3
"""Tests monitoring/ against a live server, with a real Prometheus.

Every expression that dashboards and rules hold is run, after some requests.
"""

import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.request

sys.path.insert(0, os.path.dirname(__file__))
sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2]))
import live_monitoring  # noqa: E402
import promql  # noqa: E402
from evaluation.server_process import ServerProcess  # noqa: E402

# Two strategies with labels of their own, and a pool too short for what the
# calls below want at once.
SERVER_FLAGS = ("--model=tests/golden/qwen3-qknorm", "--threads=1",
                "--strategies=half=every=2;quarter=every=4",
                "--admission=optimistic", "--kv_memory=128KiB",
                "--max_sequences=4")
LOAD_FLAGS = ("--num_prompts=60", "--concurrency=12", "--prompt_tokens=40",
              "--output_tokens=uniform:4-40", "--shared_prefix_tokens=32",
              "--mix=full,every=2,full>every=4", "--cancel_rate=0.1",
              "--cancel_within=0.05")
README = pathlib.Path("monitoring/README.md")


def panel_queries() -> list[tuple[str, str]]:
    """Where each query of a dashboard stands, and the query for all servers."""
    queries = []
    for path in sorted(pathlib.Path("monitoring/grafana/dashboards").iterdir()):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel.get("targets", []):
                expr = target["expr"].replace("$__rate_interval", "5m")
                expr = re.sub(r"\$(job|instance)\b", ".+", expr)
                queries.append((f"{path.name}: {panel['title']}", expr))
    return queries


def has_number(result: list[dict]) -> bool:
    """Of a strategy that nobody used, a mean is NaN."""
    return any(math.isfinite(float(sample["value"][1])) for sample in result)


class LiveTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory()))
        cls.server = cls.enterClassContext(
            ServerProcess("server/strata_server", SERVER_FLAGS))
        cls.prometheus = cls.enterClassContext(
            live_monitoring.Prometheus(folder, cls.server.http_address))
        # Rates are of what comes after a first scrape.
        scraped = "count_over_time(strata_build_info[5m]) >= 2"
        live_monitoring.wait_until(lambda: cls.prometheus.query(scraped))
        subprocess.run(["tests/load/strata_load", *LOAD_FLAGS,
                        f"--address={cls.server.address}"], check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        ended = "sum(strata_request_finished_total) > 0"
        live_monitoring.wait_until(lambda: cls.prometheus.query(ended))

    def expect_soon(self, where: str, expr: str, accepts=bool):
        met = live_monitoring.wait_until(
            lambda: accepts(self.prometheus.query(expr)))
        self.assertTrue(met, f"{where}: {expr} gives "
                        f"{self.prometheus.query(expr)}")

    def test_panels_show_numbers(self):
        queries = panel_queries()
        self.assertGreater(len(queries), 50)
        for where, expr in queries:
            with self.subTest(where):
                self.expect_soon(where, expr, has_number)

    def test_rules_are_evaluated_without_error(self):
        live_monitoring.wait_until(lambda: all(
            rule["health"] != "unknown" for rule in self.prometheus.rules()))
        for rule in self.prometheus.rules():
            self.assertEqual((rule["health"], rule.get("lastError")),
                             ("ok", None), rule["name"])

    def test_what_rules_and_panels_select_exists(self):
        rules = [(rule["name"], rule["query"])
                 for rule in self.prometheus.rules()]
        self.assertGreater(len(rules), 40)
        for where, expr in rules + panel_queries():
            for selector in promql.selectors(expr):
                with self.subTest(where):
                    self.expect_soon(where, selector)

    def test_recording_rules_record(self):
        for rule in self.prometheus.rules():
            if rule["type"] == "recording":
                self.expect_soon("record", rule["name"], has_number)

    def test_a_sound_idle_server_raises_no_alarm(self):
        names = {"StrataDown", "StrataAbsent", "StrataModelNotLoaded",
                 "StrataRestarts", "StrataUnhealthy", "StrataStalled",
                 "StrataErrors", "StrataKvLeak", "StrataKvBytesDoNotAddUp"}
        for rule in self.prometheus.rules():
            if rule["name"] in names:
                names.remove(rule["name"])
                quiet = live_monitoring.wait_until(
                    lambda: not self.prometheus.query(rule["query"]))
                self.assertTrue(quiet, rule["name"])
        self.assertFalse(names)

    def test_readme_lists_the_metrics_of_the_server(self):
        with urllib.request.urlopen(
                f"http://{self.server.http_address}/metrics") as answer:
            page = answer.read().decode()
        types = dict(re.findall(r"(?m)^# TYPE (\S+) (\w+)$", page))
        labels = {name: set() for name in types}
        for name, matchers in re.findall(r"(?m)^([^#\s{]+)(?:\{(.*)\})? ",
                                         page):
            family = name if name in types else re.sub(
                r"_(bucket|sum|count)$", "", name)
            labels[family].update(re.findall(r'(\w+)="', matchers))
        # What all carry, and what histograms do, is said once.
        common = {"model_name", "engine", "le"}
        listed = re.findall(r"(?m)^\| `([\w:]+)` \| (\w+) \|([^|]*)\| \S.*\|$",
                            README.read_text())
        self.assertEqual(len(listed), len({name for name, _, _ in listed}))
        self.assertEqual(
            {name: (kind, set(re.findall(r"`(\w+)`", said)))
             for name, kind, said in listed},
            {name: (kind, labels[name] - common)
             for name, kind in types.items()})


if __name__ == "__main__":
    unittest.main()
