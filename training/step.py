"""One forward pass of training as a module: tokens in, loss out.

A module, so that DistributedDataParallel and FSDP, which prepare parameters
around a module's forward, see every use of them.
"""

import contextlib
import copy

import torch
from peft import PeftModel
from torch import nn

from training.objective import HeadLoss
from training.routing import Routing


class TrainingStep(nn.Module):
    """Student and teacher over one batch.

    The teacher is the unmodified model under `full`: with a LoRA the same
    weights with the adapter off, else a frozen copy, made only where the
    objective asks for one.  In eval() the loss is the cross-entropy.
    """

    def __init__(self, model, distill_weight: float):
        super().__init__()
        self.model = model
        self._distill_weight = distill_weight
        self._is_lora = isinstance(model, PeftModel)
        self._copy = []  # in a list: no part of this module's parameters
        if not self._is_lora and distill_weight > 0:
            self._copy.append(copy.deepcopy(model).requires_grad_(False).eval())

    def forward(self, tokens: torch.Tensor, sources: list[int]) -> torch.Tensor:
        """The loss of tokens [windows, length], a mean over predictions."""
        student = self._predicting(self.model, tokens, sources)
        distill_weight = self._distill_weight if self.training else 0.0
        teacher = teacher_head = None
        if distill_weight > 0:
            teacher, teacher_head = self._teach(tokens)
        return HeadLoss.apply(
            student,
            self.model.get_output_embeddings().weight,
            teacher,
            teacher_head,
            tokens[:, 1:].reshape(-1),
            distill_weight,
        )

    @property
    def decoder(self):
        """The transformers model within."""
        return self._decoder_of(self.model)

    def _decoder_of(self, model):
        return model.get_base_model() if self._is_lora else model

    def _predicting(self, model, tokens, sources):
        """The final states that predict a next token, [rows, hidden]."""
        states = self._decoder_of(model).model(
            input_ids=tokens, routing=Routing(sources)
        ).last_hidden_state
        return states[:, :-1].reshape(-1, states.shape[-1])

    @torch.no_grad()
    def _teach(self, tokens):
        """The teacher's states and head."""
        model = self._copy[0] if self._copy else self.model
        full = list(range(model.config.num_hidden_layers))
        off = (
            model.disable_adapter()
            if self._is_lora
            else contextlib.nullcontext()
        )
        with off:
            states = self._predicting(model, tokens, full)
        return states, model.get_output_embeddings().weight.detach()
