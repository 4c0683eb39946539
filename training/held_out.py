"""Loss of a model on text, by the rule of `./strata eval`
(evaluation/README.md, "What eval measures")."""

import torch

from evaluation.text import pieces


def windows_of(text: str, tokenizer, length: int, max_tokens: int):
    """[windows, length] of at most `max_tokens` tokens."""
    tokens = []
    for piece in pieces(text):
        tokens += tokenizer(
            piece, add_special_tokens=False, split_special_tokens=True
        )["input_ids"]
        if len(tokens) >= max_tokens:
            break
    count = min(len(tokens), max_tokens) // length
    return torch.tensor(tokens[: count * length]).view(count, length)


@torch.no_grad()
def loss_under(step, windows, sources, windows_at_once=4) -> float:
    """Mean negative log-likelihood per token, in nats, under a source map.
    `step`: a TrainingStep, which is in eval() mode afterwards."""
    step.eval()
    total = 0.0
    for part in windows.split(windows_at_once):
        total += step(part, sources).item() * len(part)
    return total / len(windows)
