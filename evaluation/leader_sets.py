"""Sets of leader layers: which layers keep a KV cache.

A set is a sorted tuple of layers that begins with 0.
"""

Leaders = tuple[int, ...]


def full(num_layers: int) -> Leaders:
    return tuple(range(num_layers))


def every(step: int, num_layers: int) -> Leaders:
    return tuple(range(0, num_layers, step))


def without(leaders: Leaders, layer: int) -> Leaders:
    return tuple(kept for kept in leaders if kept != layer)


def exchanged(leaders: Leaders, old: int, new: int) -> Leaders:
    return tuple(sorted({*leaders, new} - {old}))


def slides(leaders: Leaders, num_layers: int) -> list[Leaders]:
    """All sets in which one leader moved up to its neighbours, not over them.

    A follower lies between two leaders and becomes one in place of either, so
    there are at most two sets for each follower.
    """
    ends = [*leaders[1:], num_layers]
    found = []
    for left, right in zip(leaders, ends):
        for follower in range(left + 1, right):
            found += [exchanged(leaders, old, follower)
                      for old in (left, right) if 0 < old < num_layers]
    return found


def spec(leaders: Leaders) -> str:
    return "leaders=" + ",".join(map(str, leaders))
