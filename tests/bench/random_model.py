"""Writes a GGUF file of a llama of TinyLlama's shape (1.1 billion weights) with random weights: what a large model's
speed is measured on where none is at hand.  It has no tokenizer.

  .cache/requantize-venv/bin/python tests/bench/random_model.py --type=q8_0 --out=/tmp/random.gguf

Every layer has the same numbers, which no kernel can tell.
"""
import argparse

import gguf
import numpy

LAYERS, HEADS, KV_HEADS, CONTEXT = 22, 32, 4, 2048
DIM, HIDDEN, VOCABULARY = 2048, 5632, 32000
KV_DIM = DIM // HEADS * KV_HEADS
MATRICES = {  # of a layer: outputs, inputs
    "attn_q": (DIM, DIM),
    "attn_k": (KV_DIM, DIM),
    "attn_v": (KV_DIM, DIM),
    "attn_output": (DIM, DIM),
    "ffn_gate": (HIDDEN, DIM),
    "ffn_up": (HIDDEN, DIM),
    "ffn_down": (DIM, HIDDEN),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--type", choices=("bf16", "f16", "q8_0", "q4_0", "q4_1"), default="q8_0")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", metavar="FILE.gguf", required=True)
    args = parser.parse_args()
    kind = gguf.GGMLQuantizationType[args.type.upper()]
    random = numpy.random.default_rng(args.seed)

    def matrix(outputs: int, inputs: int):
        values = random.standard_normal((outputs, inputs), dtype=numpy.float32)
        return gguf.quants.quantize(values * inputs**-0.5, kind)

    writer = gguf.GGUFWriter(args.out, arch="llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(DIM)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(DIM // HEADS)
    writer.add_vocab_size(VOCABULARY)
    ones = numpy.ones(DIM, dtype=numpy.float32)
    table = matrix(VOCABULARY, DIM)
    shared = {name: matrix(*shape) for name, shape in MATRICES.items()}
    writer.add_tensor("token_embd.weight", table, raw_dtype=kind)
    writer.add_tensor("output.weight", table, raw_dtype=kind)
    writer.add_tensor("output_norm.weight", ones)
    for layer in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", ones)
        for name, values in shared.items():
            writer.add_tensor(f"blk.{layer}.{name}.weight", values, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
