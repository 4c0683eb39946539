"""Routed attention against golden logits, a plain reference and itself."""
import json
import pathlib
import unittest

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, LlamaForCausalLM
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

import tiny_model
from training import routing

GOLDEN = pathlib.Path(__file__).absolute().parents[1] / "golden"
routing.register()


def plain_forward(model, tokens, sources):
    """Logits of a Llama model [length] by the paper's text, layer for layer."""
    decoder = model.model
    x = decoder.embed_tokens(tokens)[None]
    positions = torch.arange(len(tokens))[None]
    cos, sin = decoder.rotary_emb(x, positions)
    causal = torch.full((len(tokens), len(tokens)), -torch.inf).triu(1)
    cache = []
    for layer, source in zip(decoder.layers, sources):
        attention = layer.self_attn
        h = layer.input_layernorm(x)
        q, k, v = (projection(h).view(1, len(tokens), -1, 16).transpose(1, 2)
                   for projection in (attention.q_proj, attention.k_proj,
                                      attention.v_proj))
        q, k = apply_rotary_pos_emb(q, k, cos, sin)
        cache.append((k, v))
        k, v = (t.repeat_interleave(2, 1) for t in cache[source])
        weights = torch.softmax(q @ k.mT / 4 + causal, -1)
        x = x + attention.o_proj((weights @ v).transpose(1, 2).flatten(2))
        x = x + layer.mlp(layer.post_attention_layernorm(x))
    return model.lm_head(decoder.norm(x))[0]


def tiny():
    torch.manual_seed(3)
    return LlamaForCausalLM(tiny_model.config())


class RoutingTest(unittest.TestCase):

    def test_golden_logits_under_every_strategy(self):
        for path in sorted(GOLDEN.glob("*/golden.json")):
            golden = json.loads(path.read_text())
            logits = load_file(path.parent / "golden.safetensors")
            model = AutoModelForCausalLM.from_pretrained(
                path.parent, dtype=torch.float32,
                attn_implementation=routing.ATTENTION)
            prompt = torch.tensor(golden["prompt"])[None]
            for spec, plan in golden["plans"].items():
                with self.subTest(model=path.parent.name, spec=spec):
                    with torch.no_grad():
                        got = model(prompt, routing=routing.Routing(
                            plan["source"]), use_cache=False).logits[0]
                    want = logits[f"logits/{spec}"]
                    self.assertLess((got - want).abs().max().item(), 1e-3)

    def test_a_source_need_not_read_its_own(self):
        model = tiny()
        tokens = torch.randint(0, 257, (31,))
        for sources in ([0, 0, 1, 1, 3, 2], [0, 1, 0, 2, 0, 4], list(range(6))):
            with self.subTest(sources=sources), torch.no_grad():
                got = model(tokens[None], use_cache=False,
                            routing=routing.Routing(sources)).logits[0]
                want = plain_forward(model, tokens, sources)
                self.assertLess((got - want).abs().max().item(), 1e-4)

    def test_gradients_reach_the_layer_that_lends_and_no_other(self):
        model = tiny()
        self.gradients(model, [0, 0, 1, 1, 1, 4])
        for layer, read in enumerate([True, True, False, False, True, False]):
            for name in ("k_proj", "v_proj"):
                got = getattr(model.model.layers[layer].self_attn, name)
                with self.subTest(layer=layer, projection=name):
                    self.assertEqual(got.weight.grad is not None, read)

    def test_gradients_equal_those_of_the_plain_reference(self):
        sources = [0, 0, 1, 3, 1, 4]
        tokens = torch.randint(0, 257, (1, 33))
        model = tiny()
        got = self.gradients(model, sources, tokens)
        model.zero_grad()
        plain_forward(model, tokens[0], sources).square().mean().backward()
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                torch.testing.assert_close(got[name], parameter.grad,
                                           rtol=1e-3, atol=1e-6)

    def test_gradient_checkpointing_changes_no_gradient(self):
        tokens = torch.randint(0, 257, (2, 31))
        sources = [0, 0, 1, 1, 3, 2]
        want = self.gradients(tiny(), sources, tokens)
        model = tiny()
        model.gradient_checkpointing_enable({"use_reentrant": False})
        model.train()
        got = self.gradients(model, sources, tokens)
        self.assertEqual(want.keys(), got.keys())
        for name, gradient in want.items():
            torch.testing.assert_close(got[name], gradient)

    def test_a_later_layer_cannot_be_read(self):
        with self.assertRaises(ValueError):
            routing.Routing([0, 2, 2])

    def gradients(self, model, sources, tokens=None):
        if tokens is None:
            tokens = torch.randint(0, 257, (1, 9))
        out = model(tokens, routing=routing.Routing(sources), use_cache=False)
        out.logits.square().mean().backward()
        return {name: parameter.grad.clone() for name, parameter
                in model.named_parameters() if parameter.grad is not None}


if __name__ == "__main__":
    unittest.main()
