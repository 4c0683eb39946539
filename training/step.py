"""One forward pass of training as a module: tokens in, loss out.

A module, so that DistributedDataParallel and FSDP, which prepare parameters
around a module's forward, see every use of them.
"""

import contextlib
import copy

import torch
from peft import PeftModel
from torch import nn

from training.objective import HeadLoss, hidden_loss
from training.routing import Routing


class TrainingStep(nn.Module):
    """Student and teacher over one batch.

    The teacher is the unmodified model under `full`: with a LoRA the same
    weights with the adapter off, else a frozen copy, made only where the
    objective asks for one.
    """

    def __init__(self, model, distill_weight: float, hidden_weight: float):
        super().__init__()
        self.model = model
        self._distill_weight = distill_weight
        self._hidden_weight = hidden_weight
        self._is_lora = isinstance(model, PeftModel)
        self._copy = []  # in a list: no part of this module's parameters
        if not self._is_lora and (distill_weight > 0 or hidden_weight > 0):
            self._copy.append(copy.deepcopy(model).requires_grad_(False).eval())

    def forward(self, tokens: torch.Tensor, sources: list[int]):
        """Loss terms of tokens [windows, length] as a dict; `loss` is their sum."""
        states = self._states(self.model, tokens, sources)
        teacher = self._teacher_states(tokens)
        terms = {
            "head": HeadLoss.apply(
                _predicting(states[-1]),
                self._head(self.model),
                _predicting(teacher[-1]) if self._distill_weight > 0 else None,
                self._head(self._teacher).detach(),
                tokens[:, 1:].reshape(-1),
                self._distill_weight,
            )
        }
        loss = terms["head"]
        if self._hidden_weight > 0:
            terms["hidden"] = hidden_loss(states[:-1], teacher[:-1])
            loss = loss + self._hidden_weight * terms["hidden"]
        return terms | {"loss": loss}

    @property
    def _teacher(self):
        return self._copy[0] if self._copy else self.model

    def _head(self, model):
        return model.get_output_embeddings().weight

    def _states(self, model, tokens, sources):
        """Outputs of the layers that the objective wants, and the normed last."""
        decoder = model.get_base_model() if self._is_lora else model
        out = decoder.model(
            input_ids=tokens,
            routing=Routing(sources),
            output_hidden_states=self._hidden_weight > 0,
        )
        # transformers lists the embedding first and the normed state last.
        inner = out.hidden_states[1:-1] if self._hidden_weight > 0 else ()
        return [*inner, out.last_hidden_state]

    @torch.no_grad()
    def _teacher_states(self, tokens):
        if self._distill_weight == 0 and self._hidden_weight == 0:
            return None
        full = list(range(self.model.config.num_hidden_layers))
        with (
            self.model.disable_adapter()
            if self._is_lora
            else (contextlib.nullcontext())
        ):
            return self._states(self._teacher, tokens, full)


def _predicting(states):
    """The states that predict a next token, [rows, hidden]."""
    return states[:, :-1].reshape(-1, states.shape[-1])
