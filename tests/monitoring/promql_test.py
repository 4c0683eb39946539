#!/usr/bin/python3
"""Tests promql.py."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(__file__))
import promql  # noqa: E402


class PromqlTest(unittest.TestCase):

    def test_finds_what_is_selected(self):
        for expr, found in (
                ("up", ["up"]),
                ('a:b{x=~"$y", z="}"} / on (job) group_left () c > 0.5',
                 ['a:b{x=~"$y", z="}"}', "c"]),
                ("sum by (le) (rate(x_bucket[5m])) or sum without (a) (y)",
                 ["x_bucket", "y"]),
                ("histogram_quantile(0.99, sum(rate(x_sum{a=\"by\"}[1h])))",
                 ['x_sum{a="by"}']),
                ("time() - t > 30 and u + v == 0", ["t", "u", "v"]),
                ("avg_over_time(r[1d] offset 1h) > 14.4 * vector(0)", ["r"]),
                ("sum(a) unless on (job, instance) count (b)", ["a", "b"]),
                ("changes(p_seconds{}[30m]) >= 3", ["p_seconds{}"])):
            self.assertEqual(promql.selectors(expr), found, expr)

    def test_name_of_a_selector(self):
        self.assertEqual(promql.metric_name('vllm:a_b{c="d"}'), "vllm:a_b")
        self.assertEqual(promql.metric_name("up"), "up")


if __name__ == "__main__":
    unittest.main()
