"""training/strategies.py against the source maps of the golden models."""
import json
import pathlib
import unittest

from training.strategies import StrategyError, parse_strategy

GOLDEN = pathlib.Path(__file__).absolute().parents[1] / "golden"


class StrategiesTest(unittest.TestCase):

    def test_golden_maps(self):
        seen = 0
        for path in sorted(GOLDEN.glob("*/golden.json")):
            for spec, plan in json.loads(path.read_text())["plans"].items():
                with self.subTest(model=path.parent.name, spec=spec):
                    self.assertEqual(
                        parse_strategy(spec, len(plan["source"])),
                        plan["source"])
                seen += 1
        self.assertGreater(seen, 30)

    def test_keep_and_prefix(self):
        self.assertEqual(parse_strategy("keep=0.25", 30).count(0), 3)
        self.assertEqual(
            sorted(set(parse_strategy("keep=0.25", 30))),
            [0, 3, 7, 11, 15, 18, 22, 26])
        self.assertEqual(parse_strategy("prefix=2", 5), [0, 1, 1, 1, 1])

    def test_what_does_not_fit(self):
        for spec in ("", "half", "every=0", "every=x", "keep=0", "keep=nan",
                     "keep=1.5", "prefix=0", "prefix=7", "leaders=1,2",
                     "leaders=0,2,2", "leaders=0,6", "sources=0,1",
                     "sources=0,0,1,3,4,5", "sources=0,2,2,3,4,5", "full=1"):
            with self.subTest(spec=spec), self.assertRaises(StrategyError):
                parse_strategy(spec, 6)


if __name__ == "__main__":
    unittest.main()
