#!/usr/bin/env python3
"""Makes lora_targets.json: the modules that PEFT gives an update.

    python3 tests/golden/make_lora_targets.py   (torch, transformers, peft)

For each config PEFT itself adds a LoRA to a Llama of 12 layers; `layers` has
the numbers of those where it did, for each linear layer.
tests/core/model/lora_targets_test.cc wants the same answers of the server,
tests/training/lora_targets_test.py that the file is what the PEFT of
training/requirements.txt says.
"""

import collections
import json
import pathlib
import re

import torch
from peft import LoraConfig, get_peft_model
from peft.tuners.lora import LoraLayer
from transformers import LlamaConfig, LlamaForCausalLM

FILE = pathlib.Path(__file__).parent / "lora_targets.json"
NUM_LAYERS = 12

CONFIGS = [
    # Names, or ends of names after a dot.
    {"target_modules": ["v_proj", "q_proj"]},
    {"target_modules": ["proj", "v_proj"]},
    {"target_modules": ["self_attn.q_proj"]},
    {"target_modules": ["attn.q_proj", "down_proj"]},
    {"target_modules": ["layers.3.self_attn.q_proj"]},
    {"target_modules": ["1.self_attn.q_proj"]},
    {"target_modules": ["model.layers.3.self_attn.q_proj", "k_proj"]},
    {"target_modules": ["[qv]_proj", "o_proj"]},
    {"target_modules": ["lm_head"]},
    {"target_modules": ["lm_head", "up_proj"]},
    {"target_modules": "all-linear"},
    # A text is a regular expression for all of the name.
    {"target_modules": ".*[qv]_proj"},
    {"target_modules": "[qv]_proj|.*k_proj"},
    {"target_modules": "q_proj|lm_head"},
    {"target_modules": "self_attn.q_proj|.*gate_proj"},
    {"target_modules": r"model\.layers\.(1|11)\.mlp\..*_proj"},
    {"target_modules": r".*layers\.\d\.self_attn\.(?P<which>[kv])_proj"},
    {"target_modules": "(?i).*Q_PROJ"},
    # What is left out.
    {"target_modules": "all-linear", "exclude_modules": ["q_proj"]},
    {"target_modules": "all-linear", "exclude_modules": ["proj", "mlp"]},
    {"target_modules": ["q_proj", "v_proj"],
     "exclude_modules": ["layers.3.self_attn.q_proj", "v_proj"]},
    {"target_modules": ["q_proj", "v_proj"],
     "exclude_modules": ["model.layers.3.self_attn.q_proj"]},
    {"target_modules": ["q_proj"], "exclude_modules": r".*layers\.3.*"},
    {"target_modules": ["q_proj", "v_proj"],
     "exclude_modules": "v_proj|layers.3.*"},
    {"target_modules": ["q_proj"], "exclude_modules": []},
    # Layers.
    {"target_modules": ["q_proj"], "layers_to_transform": []},
    {"target_modules": ["q_proj"], "layers_to_transform": 3},
    {"target_modules": ["q_proj"], "layers_to_transform": 0},
    {"target_modules": ["q_proj"], "layers_to_transform": [1, 3]},
    {"target_modules": ["q_proj"], "layers_to_transform": [1, 33],
     "layers_pattern": "layers"},
    {"target_modules": ["q_proj"], "layers_to_transform": [1, 3],
     "layers_pattern": ["layers"]},
    {"target_modules": ["q_proj"], "layers_to_transform": [1],
     "layers_pattern": []},
    # Named in full: in every layer.
    {"target_modules": ["lm_head", "q_proj"], "layers_to_transform": 0},
    {"target_modules": ["model.layers.5.mlp.up_proj", "q_proj"],
     "layers_to_transform": [1]},
    {"target_modules": ["layers.5.mlp.up_proj", "q_proj"],
     "layers_to_transform": [1]},
    # Trained as a whole.
    {"target_modules": ["q_proj", "v_proj"], "modules_to_save": ["q_proj"]},
    {"target_modules": ["q_proj", "up_proj"], "modules_to_save": ["mlp"]},
    {"target_modules": ["q_proj"], "modules_to_save": ["layers.1", "norm"]},
    {"target_modules": ["q_proj", "lm_head"], "modules_to_save": ["lm_head"]},
]


def answer(config: dict) -> dict:
    """Layers that PEFT gives an update, for each linear layer that has any."""
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=8, hidden_size=8, intermediate_size=8,
        num_hidden_layers=NUM_LAYERS, num_attention_heads=1,
        num_key_value_heads=1, tie_word_embeddings=False))
    lora = get_peft_model(model, LoraConfig(
        r=1, task_type="CAUSAL_LM", **config))
    layers, has_head = collections.defaultdict(list), False
    for name, module in lora.base_model.model.named_modules():
        if not isinstance(module, LoraLayer):
            continue
        if name == "lm_head":
            has_head = True
        else:
            layer, kind = re.fullmatch(r"model\.layers\.(\d+)\.(.*)",
                                       name).groups()
            layers[kind].append(int(layer))
    return {"config": config, "layers": layers, "lm_head": has_head}


def text() -> str:
    with torch.device("meta"):
        lines = [json.dumps(answer(config)) for config in CONFIGS]
    return "[\n" + ",\n".join(lines) + "\n]\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
