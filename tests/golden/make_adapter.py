#!/usr/bin/env python3
"""Makes adapters/*: LoRA adapters of PEFT, and what the models answer with them.

    python3 tests/golden/make_adapter.py   (torch, transformers, peft, safetensors)

For each model: a random adapter (seeded), written by PEFT's save_pretrained, and
golden.json and golden.safetensors in the form of the models' own: the logits of
the prompt, in f32, under `full` and `every=2`.  They are computed by the plain
forward pass below from the weights that PEFT itself merges; the script stops
unless that pass gives the golden logits of the unmodified model under both
strategies, and under `full` those of transformers with the adapter not merged.
"""
import json
import math
import os
import sys

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

HERE = os.path.dirname(os.path.abspath(__file__))
STRATEGIES = {"full": 1, "every=2": 2}  # every how many layers one leads
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
ADAPTERS = {
    # rsLoRA with a pattern for every kind of name; the tied matrix taken apart:
    # another embedding, and a head that is the old embedding plus an update.
    "llama-tied": dict(
        dtype=torch.bfloat16,
        config=dict(
            r=4, lora_alpha=6, use_rslora=True, target_modules=LINEAR + ["lm_head"],
            rank_pattern={"down_proj": 3, r"layers\.[1-3]\.self_attn\.q_proj": 1,
                          "^model.layers.5.mlp.up_proj": 7},
            alpha_pattern={"v_proj": 5, r"model.layers.\d.mlp.gate_proj": 2.5},
            modules_to_save=["embed_tokens"])),
    # All the norms trained too: "norm" ends the names of five kinds of them.
    "qwen3-qknorm": dict(
        dtype=torch.float32,
        config=dict(r=5, lora_alpha=8, target_modules=LINEAR, layers_to_transform=[0, 2, 3, 5],
                    modules_to_save=["norm"])),
}


def rotate(x, theta):  # [heads, n, dim]
    half = x.shape[-1] // 2
    inverse = theta ** (-torch.arange(half, dtype=torch.float32) / half)
    angle = torch.arange(x.shape[1], dtype=torch.float32)[:, None] * inverse
    cos, sin = torch.cat([angle, angle], -1).cos(), torch.cat([angle, angle], -1).sin()
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def logits(config, w, prompt, every):
    """Of every position of `prompt`, where layers 0, every, 2 * every, ... lead."""
    heads, kv_heads, dim = (config[k] for k in ("num_attention_heads", "num_key_value_heads", "head_dim"))
    n, k, v = len(prompt), None, None

    def norm(x, name):
        if name + ".weight" not in w:  # models without QK norms
            return x
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + config["rms_norm_eps"])
        return x * w[name + ".weight"]

    x = w["model.embed_tokens.weight"][prompt]
    for layer in range(config["num_hidden_layers"]):
        p = f"model.layers.{layer}."
        project = lambda name, x: x @ w[f"{p}{name}.weight"].T
        h = norm(x, p + "input_layernorm")
        split = lambda name, count: project(name, h).view(n, count, dim).transpose(0, 1)
        q = rotate(norm(split("self_attn.q_proj", heads), p + "self_attn.q_norm"), config["rope_theta"])
        if layer % every == 0:
            k = rotate(norm(split("self_attn.k_proj", kv_heads), p + "self_attn.k_norm"), config["rope_theta"])
            v = split("self_attn.v_proj", kv_heads)
        wide_k, wide_v = (t.repeat_interleave(heads // kv_heads, 0) for t in (k, v))
        scores = q @ wide_k.transpose(1, 2) / math.sqrt(dim)
        scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -math.inf)
        attended = (scores.softmax(-1) @ wide_v).transpose(0, 1).reshape(n, heads * dim)
        x = x + project("self_attn.o_proj", attended)
        h = norm(x, p + "post_attention_layernorm")
        gate = torch.nn.functional.silu(project("mlp.gate_proj", h))
        x = x + project("mlp.down_proj", gate * project("mlp.up_proj", h))
    return norm(x, "model.norm") @ w["lm_head.weight"].T


def expect_near(what, got, want):
    difference = (got - want).abs().max().item()
    print(f"{what}: logits differ by {difference:.1e} at most")
    if not difference < 1e-3:
        sys.exit(f"{what}: the forward passes differ")


def randomize(model, dtype):
    """Trained parameters such as a real adapter has, representable in dtype."""
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        if "lora_" in name:
            parameter.copy_(torch.randn_like(parameter) * 0.12)
        else:
            parameter.mul_(1 + 0.2 * torch.randn_like(parameter))
        parameter.copy_(parameter.to(dtype).float())


def make(name, dtype, config):
    folder, out = os.path.join(HERE, name), os.path.join(HERE, "adapters", name)
    with open(os.path.join(folder, "config.json")) as file:
        dimensions = json.load(file)
    with open(os.path.join(folder, "golden.json")) as file:
        prompt = json.load(file)["prompt"]
    base = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    weights = {key: value.clone() for key, value in base.state_dict().items()}
    golden = load_file(os.path.join(folder, "golden.safetensors"))
    for spec, every in STRATEGIES.items():
        expect_near(f"{name}, {spec}, without adapter",
                    logits(dimensions, weights, prompt, every), golden[f"logits/{spec}"])

    model = get_peft_model(base, LoraConfig(task_type="CAUSAL_LM", **config))
    randomize(model, dtype)
    model.save_pretrained(out)
    os.remove(os.path.join(out, "README.md"))
    saved = os.path.join(out, "adapter_model.safetensors")
    save_file({key: value.to(dtype) for key, value in load_file(saved).items()}, saved,
              metadata={"format": "pt"})
    path = os.path.join(out, "adapter_config.json")
    with open(path) as file:
        written = json.load(file)
    # What depends on where and when this ran.
    written.update(base_model_name_or_path=name, target_modules=sorted(written["target_modules"]))
    with open(path, "w") as file:
        json.dump(written, file, indent=2, sort_keys=True)
        file.write("\n")

    not_merged = model(torch.tensor([prompt])).logits[0]
    merged = {key: value.clone() for key, value in model.merge_and_unload().state_dict().items()}
    found = {f"logits/{spec}": logits(dimensions, merged, prompt, every)
             for spec, every in STRATEGIES.items()}
    expect_near(f"{name}, full, with adapter", found["logits/full"], not_merged)
    for spec in STRATEGIES:
        moved = (found[f"logits/{spec}"] - golden[f"logits/{spec}"]).abs().mean().item()
        print(f"{name}, {spec}: the adapter moves a logit by {moved:.2f} on average")
    save_file(found, os.path.join(out, "golden.safetensors"))
    with open(os.path.join(out, "golden.json"), "w") as file:
        json.dump({"model": name, "prompt": prompt, "plans": {spec: {} for spec in STRATEGIES}}, file)
        file.write("\n")


if __name__ == "__main__":
    torch.manual_seed(6)
    with torch.no_grad():
        for adapter, options in ADAPTERS.items():
            make(adapter, **options)
