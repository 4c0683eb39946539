"""Which layers read which in a training step: one draw per step.

Methods of the paper (arXiv 2604.22782): R-CLA and its baselines.  `strategies`
goes beyond it: it draws source maps as servers use them.
A draw depends on (seed, step) only: a resumed run, a recomputed layer and every
process of a distributed run see the same one.
"""

import random

from training.strategies import (
    StrategyError,
    parse_strategy,
    sources_of_leaders,
)


class Draws:
    """Base class; `sources(rng)` makes one map [num_layers]."""

    def __init__(self, num_layers: int):
        self.num_layers = num_layers

    def sources(self, rng: random.Random) -> list[int]:
        raise NotImplementedError

    def at_step(self, seed: int, step: int) -> list[int]:
        return self.sources(random.Random(f"{seed}/draw/{step}"))


class Base(Draws):
    """No sharing."""

    def sources(self, rng):
        return list(range(self.num_layers))


class Cla(Draws):
    """A fixed strategy in every step (CLA, arXiv 2405.12981)."""

    def __init__(self, num_layers, spec):
        super().__init__(num_layers)
        self._sources = parse_strategy(spec, num_layers)

    def sources(self, rng):
        return list(self._sources)


class Rcla(Draws):
    """Own keys and values with probability `p_own`; else those of a layer drawn
    uniformly from all earlier ones.  Layer 0 has none earlier: its own."""

    def __init__(self, num_layers, p_own):
        super().__init__(num_layers)
        self._p_own = p_own

    def sources(self, rng):
        return [
            (
                layer
                if layer == 0 or rng.random() < self._p_own
                else rng.randrange(layer)
            )
            for layer in range(self.num_layers)
        ]


class RdCla(Draws):
    """A fixed partner, that of a strategy, or the own: a coin for each layer."""

    def __init__(self, num_layers, spec, p_own):
        super().__init__(num_layers)
        self._partners = parse_strategy(spec, num_layers)
        self._p_own = p_own

    def sources(self, rng):
        return [
            layer if rng.random() < self._p_own else partner
            for layer, partner in enumerate(self._partners)
        ]


class Nearest(Draws):
    """A random set of leaders, each layer with probability `p_own`; others read
    the nearest leader before, as a server's strategies do (equation 3.2)."""

    def __init__(self, num_layers, p_own):
        super().__init__(num_layers)
        self._p_own = p_own

    def sources(self, rng):
        leaders = {0} | {
            layer
            for layer in range(1, self.num_layers)
            if rng.random() < self._p_own
        }
        return sources_of_leaders(leaders, self.num_layers)


class Mixture(Draws):
    """One of several, by weight."""

    def __init__(self, num_layers, weighted: list[tuple[Draws, float]]):
        super().__init__(num_layers)
        self._draws = [draws for draws, _ in weighted]
        self._weights = [weight for _, weight in weighted]

    def sources(self, rng):
        return rng.choices(self._draws, self._weights)[0].sources(rng)


def make_draws(options, num_layers: int) -> Draws:
    """The draws of `--method`; raises StrategyError for a spec that does not
    fit."""
    p_own = options.p_own
    if options.method == "cla":
        return Cla(num_layers, options.strategy)
    if options.method == "rdcla":
        return RdCla(num_layers, options.strategy, p_own)
    if options.method == "strategies":
        return _mixture(options.mix, num_layers, p_own)
    return {
        "rcla": Rcla(num_layers, p_own),
        "base": Base(num_layers),
        "nearest": Nearest(num_layers, p_own),
    }[options.method]


def _mixture(mix, num_layers, p_own):
    weighted = []
    for part in mix.split(";"):
        spec, _, weight = part.strip().rpartition(":")
        try:
            weight = float(weight)
        except ValueError:
            weight = 0
        if not spec or not 0 < weight <= 1e6:
            raise StrategyError(
                f"--mix: '{part}' is not SPEC:WEIGHT, with a weight above 0 "
                "and at most 1e6"
            )
        drawn = {"rcla": Rcla, "nearest": Nearest}.get(spec)
        draws = drawn(num_layers, p_own) if drawn else Cla(num_layers, spec)
        weighted.append((draws, weight))
    return Mixture(num_layers, weighted)
