"""Searches the leader sets of least loss, one for every number of leaders."""

from collections.abc import Iterable

from evaluation import leader_sets
from evaluation.leader_sets import Leaders
from evaluation.race import SampleLoss, cost, race

# Of the layers best to add, and best to remove, that a refinement combines.
NUM_CROSSED = 3

# Taking it that removals rarely become the cheapest when others go, only one
# step in so many looks at all layers, those between at the cheaper half.
STEPS_PER_LOOK = 3

# every=N is improved if its loss is above that of `full` by no more than so
# many times what the greedy set's is.
MAX_START = 2


def search(sample: SampleLoss, num_layers: int, min_leaders: int,
           refined: Iterable[int],
           num_refinements: int) -> dict[int, Leaders]:
    """Greedy removal from `full` to `min_leaders`; number of leaders to set.

    Sets of sizes in `refined` are improved by exchanges, at most
    `num_refinements` each, before the next removal.  Where every=N has as many
    leaders, it is improved too, and the better of both goes on.
    """
    full = leader_sets.full(num_layers)
    evenly = every_sets(num_layers)
    found = {num_layers: full}
    removals = _Removals(sample)
    best = full
    while len(best) > min_leaders:
        best = removals.next(best)
        size = len(best)
        starts = [best]
        if size in evenly:
            starts.append(evenly[size])
        if size in refined and num_refinements:
            means = sample.mean([full, *starts])
            limit = means[full] + MAX_START * (means[best] - means[full])
            starts += [_refined(sample, start, num_layers, num_refinements)
                       for start in starts if means[start] <= limit]
        if len(starts) > 1:
            means = sample.mean(starts)
            best = min(means, key=means.get)
        found[size] = best
    return found


def _refined(sample, leaders, num_layers, num_refinements) -> Leaders:
    for _ in range(num_refinements):
        better = refine(sample, leaders, num_layers)
        if better == leaders:
            break
        leaders = better
    return leaders


class _Removals:
    """Finds which leader to remove next."""

    def __init__(self, sample: SampleLoss):
        self._sample = sample
        self._steps = 0
        self._by_cost = []  # layers as of the last look, cheapest first

    def next(self, leaders: Leaders) -> Leaders:
        sets = {layer: leader_sets.without(leaders, layer)
                for layer in leaders[1:]}
        if self._steps % STEPS_PER_LOOK == 0:
            means = self._sample.mean(sets.values(), 1)
            self._by_cost = sorted(sets, key=lambda layer: means[sets[layer]])
            tried = list(sets)
        else:
            # Exchanges may have brought leaders that were not looked at.
            new = [layer for layer in sets if layer not in self._by_cost]
            old = [layer for layer in self._by_cost if layer in sets]
            tried = new + old[:num_tried(len(old))]
        self._steps += 1
        return race(self._sample, [sets[layer] for layer in tried])[0]


def num_tried(num_layers: int) -> int:
    """Of so many layers, in a step that does not look at all."""
    return min(num_layers, max(4, num_layers // 2))


def every_sets(num_layers: int) -> dict[int, Leaders]:
    """Number of leaders to the set of every=N; the smallest N of each."""
    found = {}
    for step in range(1, num_layers + 1):
        leaders = leader_sets.every(step, num_layers)
        found.setdefault(len(leaders), leaders)
    return found


def refine(sample: SampleLoss, leaders: Leaders, num_layers: int) -> Leaders:
    """The best found set that differs by one exchange, if it is better.

    Tried are all moves of a leader between its neighbours, and the layers best
    to add in place of those best to remove.
    """
    followers = [layer for layer in range(num_layers) if layer not in leaders]
    if not followers or len(leaders) < 2:
        return leaders
    added = {tuple(sorted((*leaders, layer))): layer for layer in followers}
    removed = {leader_sets.without(leaders, layer): layer
               for layer in leaders[1:]}
    crossed = [
        leader_sets.exchanged(leaders, removed[fewer], added[more])
        for more in race(sample, list(added), NUM_CROSSED)
        for fewer in race(sample, list(removed), NUM_CROSSED)]
    rivals = race(sample, leader_sets.slides(leaders, num_layers) + crossed, 2)
    means = sample.mean([leaders, *rivals])
    return min(means, key=means.get)


def estimate_windows(num_layers: int, min_leaders: int, refined: Iterable[int],
                     num_refinements: int, num_windows: int) -> int:
    """About how many windows search() measures, at most."""
    total = 0
    evenly = every_sets(num_layers)
    for step, size in enumerate(range(num_layers - 1, min_leaders - 1, -1)):
        total += cost(num_tried(size) if step % STEPS_PER_LOOK else size)
        if size in refined and size > 1:
            followers = num_layers - size
            crossed = (cost(followers, NUM_CROSSED) +
                       cost(size - 1, NUM_CROSSED))
            rivals = cost(2 * followers + NUM_CROSSED ** 2, 2)
            num_starts = 2 if size in evenly else 1
            total += num_starts * num_refinements * (
                crossed + rivals + 2 * num_windows)
    return total
