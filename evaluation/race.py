"""Finds the best of many leader sets with few measurements."""

import math
from collections.abc import Callable, Iterable

from evaluation.leader_sets import Leaders

# Losses of sets on windows of the sample, measured together.
ScoreBatch = Callable[[list[tuple[Leaders, int]]], list[float]]


class SampleLoss:
    """Losses of sets on a sample of `num_windows` windows of equal length.

    Every set is measured at most once on every window.
    """

    def __init__(self, score_batch: ScoreBatch, num_windows: int):
        self._score_batch = score_batch
        self._losses = {}
        self.num_windows = num_windows

    def mean(self, sets: Iterable[Leaders],
             num_windows: int = 0) -> dict[Leaders, float]:
        """Each set's mean loss on the first `num_windows`; 0: on all."""
        windows = range(min(num_windows or self.num_windows, self.num_windows))
        sets = list(dict.fromkeys(sets))
        # Window by window, so that sets whose layers agree do not wait.
        missing = [(leaders, window) for window in windows for leaders in sets
                   if (leaders, window) not in self._losses]
        self._losses.update(zip(missing, self._score_batch(missing)))
        return {leaders: math.fsum(self._losses[leaders, window]
                                   for window in windows) / len(windows)
                for leaders in sets}


def race(sample: SampleLoss, sets: list[Leaders],
         num_survivors: int = 1) -> list[Leaders]:
    """The best sets, best first, by successive halving.

    All run on one window; the better third runs on as many again, and so on.
    Sets are compared on the same windows, where they differ much less than
    windows do, so that few windows tell bad ones from good ones.  A race of n
    sets measures about 2 n windows (see cost()).
    """
    alive = list(dict.fromkeys(sets))
    num_windows = 1
    while len(alive) > num_survivors:
        means = sample.mean(alive, num_windows)
        alive.sort(key=lambda leaders: (means[leaders], leaders))
        alive = alive[:max(num_survivors, _num_kept(len(alive)))]
        num_windows *= 2
    return alive


def _num_kept(num_sets: int) -> int:
    # Two run against each other on the last windows.
    return math.ceil(num_sets / 3) if num_sets > 2 else 1


def cost(num_sets: int, num_survivors: int = 1) -> int:
    """Windows that race() measures at most."""
    total, alive, num_windows, before = 0, num_sets, 1, 0
    while alive > num_survivors:
        total += alive * (num_windows - before)
        alive = max(num_survivors, _num_kept(alive))
        before, num_windows = num_windows, 2 * num_windows
    return total
