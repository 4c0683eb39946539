"""Cross-entropy and distillation through the vocabulary head.

Both need the softmax over the vocabulary, which at [2048, 49152] is larger
than all else in a step.  So loss and gradient are made together, a few rows at
a time, and no logits are kept.
"""

import torch

ROWS_AT_ONCE = 64


class HeadLoss(torch.autograd.Function):
    """Mean over rows of (1 - w) * CE(label) + w * KL(teacher || student).

    hidden, teacher [rows, hidden]: final states, normed; weight, teacher_weight
    [vocab, hidden]: the heads; labels [rows]; w = distill_weight.  w = 0 needs
    no teacher: None.  Gradients reach hidden and, where it asks, weight.
    """

    @staticmethod
    def forward(
        ctx, hidden, weight, teacher, teacher_weight, labels, distill_weight
    ):
        rows = hidden.shape[0]
        compute = _compute_type(hidden)
        states, head = hidden.to(compute), weight.to(compute)
        if teacher is not None:
            teacher, teacher_head = teacher.to(compute), teacher_weight.to(
                compute
            )
        grad_hidden = torch.empty_like(hidden)
        grad_weight = None
        if ctx.needs_input_grad[1]:
            grad_weight = torch.zeros_like(weight, dtype=torch.float32)
        total = 0.0
        for begin in range(0, rows, ROWS_AT_ONCE):
            part = slice(begin, begin + ROWS_AT_ONCE)
            loss, grad = _loss_and_grad(
                states[part] @ head.T,
                None if teacher is None else teacher[part] @ teacher_head.T,
                labels[part],
                distill_weight,
            )
            total += loss
            if not ctx.needs_input_grad[0]:
                continue
            grad = (grad / rows).to(compute)
            grad_hidden[part] = grad @ head
            if grad_weight is not None:
                grad_weight += grad.T @ states[part]
        ctx.save_for_backward(grad_hidden, grad_weight)
        ctx.weight_dtype = weight.dtype
        return torch.tensor(total / rows, device=hidden.device)

    @staticmethod
    def backward(ctx, grad_output):
        grad_hidden, grad_weight = ctx.saved_tensors
        if grad_weight is not None:
            grad_weight = (grad_weight * grad_output).to(ctx.weight_dtype)
        return grad_hidden * grad_output, grad_weight, None, None, None, None


def _compute_type(tensor):
    """What matrix products run in: autocast's type where it is on."""
    device = tensor.device.type
    if torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return tensor.dtype


def _loss_and_grad(logits, teacher_logits, labels, distill_weight):
    """Sum of the rows' losses, and its gradient by `logits` [rows, vocab]."""
    log_p = logits.float()
    log_p -= log_p.logsumexp(-1, keepdim=True)
    index = labels[:, None]
    loss = -(1 - distill_weight) * log_p.gather(1, index).sum()
    grad = log_p.exp()
    if teacher_logits is not None:
        log_q = teacher_logits.float()
        log_q -= log_q.logsumexp(-1, keepdim=True)
        q = log_q.exp()
        grad.sub_(q, alpha=distill_weight)
        loss += distill_weight * torch.dot(
            q.view(-1), log_q.sub_(log_p).view(-1)
        )
    grad.scatter_add_(
        1, index, torch.full_like(index, distill_weight - 1, dtype=grad.dtype)
    )
    return loss.item(), grad
