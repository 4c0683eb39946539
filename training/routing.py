"""Where each layer's attention finds its keys and values in one pass.

A forward pass of a transformers model is called with `routing=Routing(sources)`;
transformers hands unknown keyword arguments down to the attention function,
which asks the Routing.  So no modelling code is copied, and models of every
architecture whose attention goes through transformers' attention interface
work.  Keys arrive after K-norm and RoPE, as the server caches them.
"""

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

ATTENTION = "strata_routed"


class Routing:
    """The sources of one forward pass, and the keys and values borrowed in it.

    `sources[l]` <= l is the layer whose keys and values layer l attends to.
    Unlike a strategy of the server it may be any earlier layer, whether or not
    that one reads its own (R-CLA draws so).  One object serves one forward
    pass and its backward: under gradient checkpointing a layer that is run
    again finds the tensors of the first run here, so that the draw and the
    graph stay those of the forward pass.
    """

    def __init__(self, sources: list[int]):
        for layer, source in enumerate(sources):
            if not 0 <= source <= layer:
                raise ValueError(f"layer {layer} cannot read layer {source}")
        self._sources = sources
        self._lenders = {s for l, s in enumerate(sources) if s != l}
        self._lent: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def route(self, layer, key, value):
        """The (key, value) for `layer`, which computed these; shapes stay."""
        if layer in self._lenders:
            self._lent.setdefault(layer, (key, value))
        source = self._sources[layer]
        return (key, value) if source == layer else self._lent[source]


def routed_attention(
    module, query, key, value, attention_mask, *, routing=None, **kwargs
):
    """transformers' attention function; without a routing, plain attention."""
    if routing is not None:
        key, value = routing.route(module.layer_idx, key, value)
    return sdpa_attention_forward(
        module, query, key, value, attention_mask, **kwargs
    )


def register():
    """Makes `attn_implementation=ATTENTION` known to transformers."""
    AttentionInterface.register(ATTENTION, routed_attention)
    AttentionMaskInterface.register(ATTENTION, sdpa_mask)
