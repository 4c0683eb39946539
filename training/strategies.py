"""Text forms of a sharing strategy, as in proto/strata.proto.

The twin of core/sharing_strategy.h; tests/training/strategies_test.py holds
the two against each other.
"""

import math


class StrategyError(ValueError):
    """The text of a strategy that does not fit; the message is for users."""


def parse_strategy(spec: str, num_layers: int) -> list[int]:
    """The source map of `spec`: for each layer, the leader that it reads."""
    name, _, value = spec.partition("=")
    readers = {
        "every": _every,
        "keep": _keep,
        "prefix": _prefix,
        "leaders": _leaders,
        "sources": _sources,
    }
    if spec == "full":
        return list(range(num_layers))
    if name not in readers or not value:
        raise StrategyError(
            f"strategy '{spec}': not one of full, every=N, keep=R, prefix=K, "
            "leaders=0,..., sources=0,..."
        )
    try:
        return readers[name](value, num_layers)
    except ValueError as error:
        raise StrategyError(f"strategy '{spec}': {error}") from None


def sources_of_leaders(leaders: set[int], num_layers: int) -> list[int]:
    """Equation 3.2 of the paper: each layer reads the nearest leader before."""
    sources = []
    for layer in range(num_layers):
        sources.append(layer if layer in leaders else sources[-1])
    return sources


def _every(value, num_layers):
    step = int(value)
    if step < 1:
        raise ValueError("N is at least 1")
    return sources_of_leaders(set(range(0, num_layers, step)), num_layers)


def _keep(value, num_layers):
    ratio = float(value)
    if not 0 < ratio <= 1:
        raise ValueError("R is above 0 and at most 1")
    count = math.ceil(ratio * num_layers)
    leaders = {index * num_layers // count for index in range(count)}
    return sources_of_leaders(leaders, num_layers)


def _prefix(value, num_layers):
    count = int(value)
    if not 1 <= count <= num_layers:
        raise ValueError(f"K is from 1 to {num_layers}, the number of layers")
    return sources_of_leaders(set(range(count)), num_layers)


def _leaders(value, num_layers):
    leaders = [int(part) for part in value.split(",")]
    if leaders[0] != 0 or leaders != sorted(set(leaders)):
        raise ValueError("leaders rise and begin with 0")
    if leaders[-1] >= num_layers:
        raise ValueError(f"leader {leaders[-1]} of {num_layers} layers")
    return sources_of_leaders(set(leaders), num_layers)


def _sources(value, num_layers):
    sources = [int(part) for part in value.split(",")]
    if len(sources) != num_layers:
        raise ValueError(f"{len(sources)} sources for {num_layers} layers")
    for layer, source in enumerate(sources):
        if not 0 <= source <= layer or sources[source] != source:
            raise ValueError(
                f"layer {layer} reads {source}, which is no leader "
                "at or before it"
            )
    return sources
