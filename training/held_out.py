"""Loss of a model on text, by the rule of `./strata eval`
(evaluation/README.md, "What eval measures")."""

import torch

from training.routing import Routing


def windows_of(text: str, tokenizer, length: int, max_tokens: int):
    """[windows, length] of at most `max_tokens` tokens."""
    tokens = tokenizer(
        text, add_special_tokens=False, split_special_tokens=True
    )["input_ids"][:max_tokens]
    count = len(tokens) // length
    return torch.tensor(tokens[: count * length]).view(count, length)


@torch.no_grad()
def loss_under(model, windows, sources, windows_at_once=4) -> float:
    """Mean negative log-likelihood per token, in nats, under a source map."""
    total, count = 0.0, 0
    for part in windows.split(windows_at_once):
        logits = model(input_ids=part, routing=Routing(sources)).logits
        log_p = torch.log_softmax(logits[:, :-1].float(), -1)
        chosen = log_p.gather(-1, part[:, 1:, None])
        total -= chosen.sum().item()
        count += chosen.numel()
    return total / count
