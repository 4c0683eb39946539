"""The learning rate over a run."""

import math


def rate_at(step: int, steps: int, warmup: float, schedule: str) -> float:
    """Factor in (0, 1] of the learning rate for step 0 .. steps - 1."""
    rising = max(1, round(warmup * steps))
    if step < rising:
        return (step + 1) / rising
    left = (steps - step) / max(1, steps - rising)
    if schedule == "linear":
        return left
    return 0.5 * (1 - math.cos(math.pi * left))
