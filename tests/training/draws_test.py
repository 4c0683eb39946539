"""Frequencies and repeatability of the draws."""
import collections
import types
import unittest

from training.draws import Base, Cla, Nearest, RdCla, Rcla, make_draws
from training.strategies import StrategyError

LAYERS, STEPS = 7, 6000


def drawn(draws):
    return [draws.at_step(1, step) for step in range(STEPS)]


def options(**changed):
    return types.SimpleNamespace(**{
        "method": "strategies", "p_own": 0.5, "strategy": "every=2",
        "mix": "full:1;every=2:3"} | changed)


class DrawsTest(unittest.TestCase):

    def test_rcla_own_with_p_else_uniform_over_all_earlier(self):
        maps = drawn(Rcla(LAYERS, 0.6))
        self.assertTrue(all(sources[0] == 0 for sources in maps))
        for layer in range(1, LAYERS):
            counts = collections.Counter(sources[layer] for sources in maps)
            self.assertAlmostEqual(counts[layer] / STEPS, 0.6, delta=0.03)
            for earlier in range(layer):
                self.assertAlmostEqual(counts[earlier] / STEPS, 0.4 / layer,
                                       delta=0.03)

    def test_rcla_layers_draw_apart(self):
        both = sum(sources[3] == 3 and sources[5] == 5
                   for sources in drawn(Rcla(LAYERS, 0.6)))
        self.assertAlmostEqual(both / STEPS, 0.36, delta=0.03)

    def test_p_own_zero_and_one(self):
        self.assertEqual(Rcla(LAYERS, 1.0).at_step(1, 5), list(range(LAYERS)))
        never = Rcla(LAYERS, 0.0).at_step(1, 5)
        self.assertTrue(all(s < l for l, s in enumerate(never) if l))

    def test_rdcla_partner_or_own(self):
        partners = [0, 0, 2, 2, 4, 4, 6]
        maps = drawn(RdCla(LAYERS, "every=2", 0.6))
        for layer in (1, 3, 5):
            counts = collections.Counter(sources[layer] for sources in maps)
            self.assertEqual(set(counts), {layer, partners[layer]})
            self.assertAlmostEqual(counts[layer] / STEPS, 0.6, delta=0.03)
        self.assertTrue(all(s[layer] == layer for s in maps
                            for layer in (0, 2, 4, 6)))

    def test_nearest_is_a_strategy(self):
        for sources in drawn(Nearest(LAYERS, 0.3)):
            leaders = [l for l, s in enumerate(sources) if l == s]
            self.assertEqual(sources, [max(j for j in leaders if j <= l)
                                       for l in range(LAYERS)])

    def test_fixed_ones(self):
        self.assertEqual(Base(4).at_step(9, 9), [0, 1, 2, 3])
        self.assertEqual(Cla(5, "every=2").at_step(9, 9), [0, 0, 2, 2, 4])

    def test_mixture_by_weight(self):
        maps = drawn(make_draws(options(), LAYERS))
        full = sum(sources == list(range(LAYERS)) for sources in maps)
        self.assertAlmostEqual(full / STEPS, 0.25, delta=0.03)

    def test_same_seed_and_step_same_draw(self):
        one, other = (Rcla(LAYERS, 0.5) for _ in range(2))
        self.assertEqual(one.at_step(7, 3), other.at_step(7, 3))
        self.assertNotEqual([one.at_step(7, s) for s in range(9)],
                            [one.at_step(8, s) for s in range(9)])

    def test_bad_mix(self):
        for mix in ("", "full", "full:0", "full:-1", "half:1", "full:nan",
                    "every=2:x"):
            with self.subTest(mix=mix), self.assertRaises(StrategyError):
                make_draws(options(mix=mix), LAYERS)


if __name__ == "__main__":
    unittest.main()
