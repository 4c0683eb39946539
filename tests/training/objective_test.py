"""Losses and their gradients against autograd over whole logits."""
import unittest

import torch
import torch.nn.functional as F

from training.objective import HeadLoss


def plain(hidden, weight, teacher, teacher_weight, labels, w):
    log_p = F.log_softmax(hidden @ weight.T, -1)
    loss = (1 - w) * F.nll_loss(log_p, labels)
    if w:
        q = F.softmax(teacher @ teacher_weight.T, -1)
        loss = loss + w * F.kl_div(log_p, q, reduction="batchmean")
    return loss


class HeadLossTest(unittest.TestCase):

    def check(self, rows, w, weight_grad):
        torch.manual_seed(rows)
        vocab, size = 101, 12
        labels = torch.randint(0, vocab, (rows,))
        teacher = (torch.randn(rows, size), torch.randn(vocab, size))
        got, want = ([torch.randn(rows, size, requires_grad=True,
                                  generator=torch.manual_seed(1)),
                      torch.randn(vocab, size, requires_grad=weight_grad,
                                  generator=torch.manual_seed(2))]
                     for _ in range(2))
        loss = HeadLoss.apply(*got, *(teacher if w else (None, None)), labels, w)
        expected = plain(*want, *teacher, labels, w)
        (3 * loss).backward()
        (3 * expected).backward()
        torch.testing.assert_close(loss, expected.detach())
        torch.testing.assert_close(got[0].grad, want[0].grad)
        if weight_grad:
            torch.testing.assert_close(got[1].grad, want[1].grad)

    def test_all(self):
        for rows in (1, 31, 256, 257, 700):
            for w in (0.0, 0.3, 1.0):
                for weight_grad in (False, True):
                    with self.subTest(rows=rows, w=w, weight_grad=weight_grad):
                        self.check(rows, w, weight_grad)

    def test_distance_from_oneself_is_nothing(self):
        hidden = torch.randn(5, 12, requires_grad=True)
        weight = torch.randn(33, 12)
        loss = HeadLoss.apply(hidden, weight, hidden.detach(), weight,
                              torch.zeros(5, dtype=torch.long), 1.0)
        loss.backward()
        self.assertLess(abs(loss.item()), 1e-6)
        self.assertLess(hidden.grad.abs().max().item(), 1e-6)


if __name__ == "__main__":
    unittest.main()
