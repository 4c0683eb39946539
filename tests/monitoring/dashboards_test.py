#!/usr/bin/python3
"""Tests the form of monitoring/grafana; live_test.py runs the queries."""

import itertools
import json
import pathlib
import re
import sys
import unittest

GRAFANA = pathlib.Path("monitoring/grafana")
sys.path.insert(0, str(GRAFANA))
import make_dashboards  # noqa: E402

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
UNITS = {"Bps", "bytes", "none", "ops", "percentunit", "reqps", "s", "short",
         "suffix: tok/s"}
KINDS = {"heatmap", "row", "stat", "table", "timeseries"}

DASHBOARDS = {path.name: json.loads(path.read_text())
              for path in sorted((GRAFANA / "dashboards").glob("*.json"))}
PANELS = [(name, panel) for name, board in DASHBOARDS.items()
          for panel in board["panels"] if panel["type"] != "row"]
TARGETS = [(f"{name}: {panel['title']}: {target['legendFormat']}", target)
           for name, panel in PANELS for target in panel["targets"]]


def overlap(one: dict, other: dict) -> bool:
    a, b = one["gridPos"], other["gridPos"]
    return (a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"] and
            a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"])


class DashboardsTest(unittest.TestCase):

    def test_files_are_those_that_the_script_makes(self):
        self.assertEqual({path.name: path.read_text() for path
                          in (GRAFANA / "dashboards").iterdir()},
                         make_dashboards.files(),
                         "run monitoring/grafana/make_dashboards.py")

    def test_boards(self):
        self.assertEqual(list(DASHBOARDS), ["fleet.json", "kv.json",
                                            "service.json"])
        for board in DASHBOARDS.values():
            self.assertEqual(board["schemaVersion"], 39)
            self.assertTrue(board["description"])
            self.assertNotIn("id", board)
            self.assertEqual(
                [v["name"] for v in board["templating"]["list"]],
                ["datasource", "job", "instance"])
            self.assertEqual(board["templating"]["list"][0]["type"],
                             "datasource")
        for key in ("uid", "title"):
            self.assertEqual(len({b[key] for b in DASHBOARDS.values()}), 3)

    def test_panels_have_ids_and_places_of_their_own(self):
        for name, board in DASHBOARDS.items():
            ids = [panel["id"] for panel in board["panels"]]
            self.assertEqual(len(ids), len(set(ids)))
            titles = [panel["title"] for panel in board["panels"]
                      if panel["type"] == "row"]
            self.assertEqual(len(titles), len(set(titles)))
            for panel in board["panels"]:
                place = panel["gridPos"]
                self.assertGreater(place["w"] * place["h"], 0)
                self.assertLessEqual(place["x"] + place["w"], 24)
            for one, other in itertools.combinations(board["panels"], 2):
                self.assertFalse(overlap(one, other),
                                 (name, one["title"], other["title"]))

    def test_panels_say_what_they_show(self):
        for name, panel in PANELS:
            with self.subTest(f"{name}: {panel['title']}"):
                self.assertIn(panel["type"], KINDS)
                self.assertTrue(panel["title"])
                self.assertRegex(panel["description"], r"\.$")
                self.assertIn(panel["fieldConfig"]["defaults"]["unit"], UNITS)
                if panel["type"] == "heatmap":
                    self.assertIn(panel["options"]["yAxis"]["unit"], UNITS)
                references = [t["refId"] for t in panel["targets"]]
                self.assertTrue(references)
                self.assertEqual(len(references), len(set(references)))

    def test_the_data_source_is_the_variable(self):
        for _, holder in PANELS + TARGETS:
            self.assertEqual(holder["datasource"], DATASOURCE)
        for board in DASHBOARDS.values():
            for variable in board["templating"]["list"][1:]:
                self.assertEqual(variable["datasource"], DATASOURCE)


class QueriesTest(unittest.TestCase):

    def test_are_of_the_chosen_servers(self):
        for name, target in TARGETS:
            with self.subTest(name):
                for matchers in re.findall(r"\{(.*?)\}", target["expr"]):
                    self.assertIn('job=~"$job"', matchers)
                    if "slo:" not in target["expr"]:
                        self.assertIn('instance=~"$instance"', matchers)
                unbound = re.sub(r"slo:strata_budget:ratio", "",
                                 target["expr"])
                self.assertNotRegex(unbound, r"strata_\w+(?![\w:{])")

    def test_rates_are_over_the_interval_of_the_panel(self):
        for name, target in TARGETS:
            for window in re.findall(r"rate\([^\[]*\[(.*?)\]", target["expr"]):
                self.assertEqual(window, "$__rate_interval", name)

    def test_legends_match_quantiles(self):
        for name, target in TARGETS:
            with self.subTest(name):
                levels = re.findall(r"histogram_quantile\(([\d.]+),",
                                    target["expr"])
                said = re.findall(r"\bp(\d[\d.]*)\b", target["legendFormat"])
                self.assertEqual([f"{float(level) * 100:g}"
                                  for level in levels], said)
                if levels:
                    self.assertRegex(target["expr"], r"sum by \(le\b")
                    self.assertRegex(target["expr"], r"rate\(\w+_bucket\{")

    def test_means_are_rate_of_sum_by_rate_of_count(self):
        mean = re.compile(
            r"(sum(?: by \([\w, ]+\))?) \(rate\((\w+)_sum(\{.*?\}\[.*?\])\)\)"
            r" / \1 \(rate\(\2_count\3\)\)")
        for name, target in TARGETS:
            with self.subTest(name):
                is_mean = mean.fullmatch(target["expr"]) is not None
                self.assertEqual("_sum{" in target["expr"], is_mean)
                self.assertEqual(
                    bool(re.match(r"mean\b", target["legendFormat"])), is_mean)

    def test_labels_of_legends_are_kept(self):
        for name, target in TARGETS:
            for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                kept = re.findall(r"by \(([\w, ]+)\)", target["expr"])
                for labels in kept:
                    self.assertIn(label, labels.split(", "), name)


if __name__ == "__main__":
    unittest.main()
