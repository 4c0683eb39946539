"""Models small enough for tests: golden ones, and one that reads text."""

import json
import math
import pathlib
import random
import struct

ROOT = pathlib.Path(__file__).absolute().parents[2]
GOLDEN = ROOT / "tests/golden/llama-tied"
TOKENIZER = ROOT / "tests/core/text/testdata/smollm.tokenizer.json"

NUM_LAYERS, HIDDEN, INTERMEDIATE, HEADS, VOCAB = 6, 32, 48, 2, 1013

_CHAT_TEMPLATE = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if "
    "add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


def golden_loss(plan: str) -> float:
    """Of the golden prompt, nats per token, from PyTorch's logits."""
    prompt = golden_prompt()
    rows = _read_rows(GOLDEN / "golden.safetensors", f"logits/{plan}")
    losses = []
    for row, token in zip(rows, prompt[1:]):
        top = max(row)
        total = math.fsum(math.exp(logit - top) for logit in row)
        losses.append(top + math.log(total) - row[token])
    return math.fsum(losses) / len(losses)


def golden_prompt() -> list[int]:
    return json.loads((GOLDEN / "golden.json").read_text())["prompt"]


def _read_rows(path: pathlib.Path, name: str) -> list[tuple[float, ...]]:
    """An F32 tensor of two dimensions in a safetensors file."""
    content = path.read_bytes()
    header_bytes, = struct.unpack_from("<Q", content)
    tensor = json.loads(content[8:8 + header_bytes])[name]
    assert tensor["dtype"] == "F32"
    begin = 8 + header_bytes + tensor["data_offsets"][0]
    rows, columns = tensor["shape"]
    return [struct.unpack_from(f"<{columns}f", content,
                               begin + 4 * row * columns)
            for row in range(rows)]


def write_text_model(folder: pathlib.Path):
    """A Llama of random weights with a byte-level BPE tokenizer."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama",
        "torch_dtype": "bfloat16", "hidden_act": "silu", "vocab_size": VOCAB,
        "hidden_size": HIDDEN, "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": NUM_LAYERS, "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS, "head_dim": HIDDEN // HEADS,
        "max_position_embeddings": 512, "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True, "bos_token_id": 1000,
        "eos_token_id": 1002, "attention_bias": False, "rope_theta": 10000.0}))
    (folder / "tokenizer.json").write_bytes(TOKENIZER.read_bytes())
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"chat_template": _CHAT_TEMPLATE, "eos_token": "<|im_end|>"}))
    _write_weights(folder / "model.safetensors")


def _write_weights(path: pathlib.Path):
    shapes = {"model.embed_tokens.weight": [VOCAB, HIDDEN],
              "model.norm.weight": [HIDDEN]}
    for layer in range(NUM_LAYERS):
        for name, shape in (
                ("input_layernorm", [HIDDEN]),
                ("post_attention_layernorm", [HIDDEN]),
                ("self_attn.q_proj", [HIDDEN, HIDDEN]),
                ("self_attn.k_proj", [HIDDEN, HIDDEN]),
                ("self_attn.v_proj", [HIDDEN, HIDDEN]),
                ("self_attn.o_proj", [HIDDEN, HIDDEN]),
                ("mlp.gate_proj", [INTERMEDIATE, HIDDEN]),
                ("mlp.up_proj", [INTERMEDIATE, HIDDEN]),
                ("mlp.down_proj", [HIDDEN, INTERMEDIATE])):
            shapes[f"model.layers.{layer}.{name}.weight"] = shape
    chance = random.Random(7)
    header, data = {}, bytearray()
    for name, shape in shapes.items():
        begin = len(data)
        for _ in range(math.prod(shape)):  # bf16: the upper half of f32
            data += struct.pack("<f", chance.uniform(-0.5, 0.5))[2:]
        header[name] = {"dtype": "BF16", "shape": shape,
                        "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
