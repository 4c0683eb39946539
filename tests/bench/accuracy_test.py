#!/usr/bin/env python3
"""Tests what accuracy.py makes of log-probabilities."""

import math
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))
import accuracy  # noqa: E402
from evaluation.failure import BadInput, Failure  # noqa: E402


class AccuracyTest(unittest.TestCase):
    def test_differences(self):
        found = accuracy.compare([-1.0, -2.5, -3.0], [-1.25, -2.0, -3.0])
        self.assertAlmostEqual(found["mean"], 0.25)
        self.assertAlmostEqual(found["max"], 0.5)
        self.assertAlmostEqual(found["perplexity"], math.exp(0.25 / 3) - 1)

    def test_what_is_no_number_is_no_result(self):
        with self.assertRaisesRegex(Failure, "not finite"):
            accuracy.compare([math.nan], [-1.0])
        with self.assertRaises(ValueError):
            accuracy.compare([-1.0], [-1.0, -2.0])

    def test_windows_have_something_to_predict(self):
        size = accuracy.WINDOW
        self.assertEqual(
            [len(part) for part in accuracy.windows([0] * (2 * size + 1))],
            [size, size])

    def test_table(self):
        row = {"mean": 0.05764, "max": 0.661, "perplexity": 0.0062}
        text = accuracy.document({
            "model": "m.gguf", "tokens": 7, "text": "t.txt", "date": "now",
            "formats": {"q4_1": {"Strata": row, "llama.cpp": row}}})
        self.assertRegex(
            text, r"\| Q4_1 +\| llama.cpp +\| +0.0576 \| +0.66 \| +\+0.62% \|")

    def test_bad_flags(self):
        with tempfile.NamedTemporaryFile(suffix=".txt") as text:
            for flags, message in (
                    (["--text=/none"], "is not there"),
                    ([f"--text={text.name}", "--out=/none/x"], "not there"),
                    ([f"--text={text.name}", "--formats=q5"], "some of")):
                with self.subTest(flags), \
                        self.assertRaisesRegex(BadInput, message):
                    accuracy.parse_arguments(["--model=m.gguf", *flags])


if __name__ == "__main__":
    unittest.main()
