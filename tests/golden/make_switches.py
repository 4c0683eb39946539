#!/usr/bin/env python3
"""Makes qwen3-qknorm/switches.json: greedy tokens after a switch at every position.

    python3 tests/golden/make_switches.py      (needs torch and safetensors)

Each position is run by itself, under the strategy it belongs to, in f32: a
follower reads the cache of its leader, whoever wrote it.  First the script does
the same for the trajectories in golden.json, and stops if they differ.
"""
import json
import math
import os

import torch
from safetensors.torch import load_file

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "qwen3-qknorm")
STEPS = 12
PAIRS = [("full", "every=2"), ("full", "leaders=0"), ("every=2", "every=4")]


def sources(spec, layers):
    if spec == "full":
        leaders = range(layers)
    elif spec.startswith("every="):
        leaders = range(0, layers, int(spec[6:]))
    else:
        leaders = [int(x) for x in spec[len("leaders="):].split(",")]
    return [max(j for j in leaders if j <= layer) for layer in range(layers)]


class Model:
    def __init__(self):
        with open(os.path.join(FOLDER, "config.json")) as file:
            self.config = json.load(file)
        weights = load_file(os.path.join(FOLDER, "model.safetensors"))
        self.weights = {name: w.float() for name, w in weights.items()}

    def norm(self, x, name):
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.config["rms_norm_eps"])
        return x * self.weights[name + ".weight"]

    def rope(self, x, position):  # [heads, head_dim]
        half = x.shape[-1] // 2
        angle = position * self.config["rope_theta"] ** (-torch.arange(half, dtype=torch.float32) / half)
        cos, sin = torch.cat([angle, angle]).cos(), torch.cat([angle, angle]).sin()
        return x * cos + torch.cat([-x[:, half:], x[:, :half]], -1) * sin

    def step(self, token, position, source, cache):
        """Logits after `token`; cache[layer][position] = (k, v) of leaders."""
        c, w = self.config, self.weights
        heads, kv_heads, dim = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        x = w["model.embed_tokens.weight"][token]
        for layer in range(c["num_hidden_layers"]):
            p = f"model.layers.{layer}."
            h = self.norm(x, p + "input_layernorm")
            q = (w[p + "self_attn.q_proj.weight"] @ h).view(heads, dim)
            q = self.rope(self.norm(q, p + "self_attn.q_norm"), position)
            if source[layer] == layer:
                k = (w[p + "self_attn.k_proj.weight"] @ h).view(kv_heads, dim)
                v = (w[p + "self_attn.v_proj.weight"] @ h).view(kv_heads, dim)
                cache[layer][position] = (self.rope(self.norm(k, p + "self_attn.k_norm"), position), v)
            read = cache[source[layer]]
            k = torch.stack([read[i][0] for i in range(position + 1)], 1)  # [kv_heads, n, dim]
            v = torch.stack([read[i][1] for i in range(position + 1)], 1)
            k, v = (t.repeat_interleave(heads // kv_heads, 0) for t in (k, v))
            scores = torch.softmax((k @ q[:, :, None])[..., 0] / math.sqrt(dim), -1)
            x = x + w[p + "self_attn.o_proj.weight"] @ (scores[:, None, :] @ v).reshape(-1)
            h = self.norm(x, p + "post_attention_layernorm")
            gate = torch.nn.functional.silu(w[p + "mlp.gate_proj.weight"] @ h)
            x = x + w[p + "mlp.down_proj.weight"] @ (gate * (w[p + "mlp.up_proj.weight"] @ h))
        return w["lm_head.weight"] @ self.norm(x, "model.norm")

    def greedy(self, prompt, before, after, position):
        """STEPS tokens; positions from `position` on are run under `after`."""
        layers = self.config["num_hidden_layers"]
        cache = [{} for _ in range(layers)]
        tokens, margin = list(prompt), math.inf
        for i in range(len(prompt) + STEPS - 1):
            spec = before if i < position else after
            logits = self.step(tokens[i], i, sources(spec, layers), cache)
            if i + 1 < len(prompt):
                continue
            best = logits.topk(2)
            margin = min(margin, (best.values[0] - best.values[1]).item())
            tokens.append(best.indices[0].item())
        return tokens[len(prompt):], margin, logits


def main():
    model = Model()
    with open(os.path.join(FOLDER, "golden.json")) as file:
        golden = json.load(file)
    want = load_file(os.path.join(FOLDER, "golden.safetensors"))
    prompt = golden["prompt"]
    for i, demotion in enumerate(golden["demotions"]):
        position = len(prompt) + demotion["prompt_and_first_tokens_under_from"]
        tokens, _, logits = model.greedy(prompt, demotion["from"], demotion["to"], position)
        assert tokens == demotion["tokens"], (demotion, tokens)
        difference = (logits - want[f"demote/{i}"][STEPS - 2]).abs().max().item()
        # Row t there is what follows token t.
        print(f"demotion {i}: same tokens, logits differ by {difference:.1e} at most")
        assert difference < 1e-4
    found = []
    for before, after in PAIRS:
        for position in range(len(prompt) + STEPS):
            tokens, margin, _ = model.greedy(prompt, before, after, position)
            found.append({"from": before, "to": after, "position": position,
                          "tokens": tokens, "min_margin": round(margin, 6)})
    with open(os.path.join(FOLDER, "switches.json"), "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(f) for f in found) + "\n]\n")
    print(f"{len(found)} trajectories, {len({tuple(f['tokens']) for f in found})} different, "
          f"least margin {min(f['min_margin'] for f in found):.4f}")


if __name__ == "__main__":
    with torch.no_grad():
        main()
