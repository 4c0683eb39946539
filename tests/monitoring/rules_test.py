#!/usr/bin/python3
"""Tests monitoring/prometheus with promtool, of Debian's package prometheus."""

import pathlib
import re
import subprocess
import unittest

PROMTOOL = "/usr/bin/promtool"
RULES = pathlib.Path("monitoring/prometheus")
CASES = sorted(pathlib.Path("tests/monitoring/prometheus").glob("*_test.yml"))


def promtool(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run([PROMTOOL, *map(str, arguments)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)


def alerts() -> dict[str, str]:
    """The text of each alert rule, by name."""
    parts = re.split(r"(?m)^      - alert: (\w+)$",
                     (RULES / "alert_rules.yml").read_text())
    return dict(zip(parts[1::2], parts[2::2]))


class RulesTest(unittest.TestCase):

    def test_files_are_valid(self):
        checked = promtool("check", "config", RULES / "prometheus.yml")
        self.assertEqual(checked.returncode, 0, checked.stdout)
        self.assertIn(f"SUCCESS: {len(alerts())} rules found", checked.stdout)
        linted = promtool("check", "rules", "--lint=all", "--lint-fatal",
                          *RULES.glob("*_rules.yml"))
        self.assertEqual(linted.returncode, 0, linted.stdout)

    def test_cases(self):
        self.assertTrue(CASES)
        for case in CASES:
            with self.subTest(case.name):
                run = promtool("test", "rules", case)
                self.assertEqual(run.returncode, 0, run.stdout)

    def test_every_alert_has_a_case_that_fires_and_one_that_does_not(self):
        text = "".join(case.read_text() for case in CASES)
        quiet = re.findall(
            r"alertname: (\w+), eval_time: \w+, exp_alerts: \[\]", text)
        fires = re.findall(r"alertname: (\w+)\n +eval_time: \w+\n"
                           r" +exp_alerts:\n +- exp_labels:", text)
        self.assertEqual(set(fires), set(alerts()))
        self.assertEqual(set(quiet), set(alerts()))

    def test_every_alert_says_what_is_needed(self):
        for name, rule in alerts().items():
            with self.subTest(name):
                self.assertRegex(rule, r"severity: (critical|warning)\}")
                self.assertRegex(rule, r"(?m)^          summary: .+")
                self.assertRegex(rule, r"(?m)^          description: .*"
                                 r"\{\{ \$value [^}]*\}\}")
                self.assertIn("runbook: monitoring/README.md#" + name.lower(),
                              rule)


class RunbookTest(unittest.TestCase):

    def test_sections_are_the_alerts(self):
        readme = pathlib.Path("monitoring/README.md").read_text()
        self.assertEqual(re.findall(r"(?m)^### (Strata\w+)$", readme),
                         list(alerts()))
        table = re.findall(r"(?m)^\| \[(Strata\w+)\]\(#(\w+)\) \| (\w+) ",
                           readme)
        self.assertEqual(
            table, [(name, name.lower(),
                     re.search(r"severity: (\w+)", rule)[1])
                    for name, rule in alerts().items()])


if __name__ == "__main__":
    unittest.main()
