"""Loss of a model on windows of text."""

import dataclasses
import math
import time

from evaluation.connection import Connection, Strategy
from evaluation.progress import Progress


@dataclasses.dataclass(frozen=True)
class TextLoss:
    loss: float  # mean negative log-likelihood of a token, nats
    perplexity: float
    num_tokens: int  # that were predicted
    tokens_per_second: float  # scored, all calls together


def measure(connection: Connection, strategy: Strategy,
            windows: list[list[int]], progress: Progress) -> TextLoss:
    """Every token of a window but its first counts."""

    def score(window):
        response = connection.score(window, strategy.spec)
        progress.add()
        return response.sum_logprob

    begin = time.monotonic()
    total = -math.fsum(connection.run_all(score, windows))
    seconds = time.monotonic() - begin
    num_tokens = sum(len(window) - 1 for window in windows)
    loss = total / num_tokens
    return TextLoss(
        loss=loss, perplexity=math.exp(min(loss, 700)), num_tokens=num_tokens,
        tokens_per_second=sum(map(len, windows)) / seconds)
