"""A miniature of the paper's table 3: methods against retention.

    PYTHONPATH=. .cache/training-venv/bin/python -m training.table3 \\
        --data=FILE --held_out=FILE --out=DIR

Trains a small byte-level model from scratch without sharing, then goes on from
it with each method for the same number of steps, and prints the held-out loss
of each under `full`, `every=2` and `every=4`.  The paper reports F1 of
Llama-3.1-8B on five tasks; a model of this size answers nothing, so the
ordering of losses stands for it.
"""

import argparse
import json
import pathlib
import sys

from training.train import main as train

METHODS = {
    "base": ["--method=base"],
    "R-CLA": ["--method=rcla"],
    "CLA@2": ["--method=cla", "--strategy=every=2"],
    "CLA@4": ["--method=cla", "--strategy=every=4"],
    "RD-CLA@2": ["--method=rdcla", "--strategy=every=2"],
    "RD-CLA@4": ["--method=rdcla", "--strategy=every=4"],
}
RETENTION = {"full": "100 %", "every=2": "50 %", "every=4": "25 %"}


def make_model(folder: pathlib.Path, num_layers: int, hidden: int, seed: int):
    """A random Llama with a tokenizer of bytes."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from training.byte_tokenizer import EOS, VOCAB_SIZE, byte_tokenizer

    byte_tokenizer().save_pretrained(folder)
    torch.manual_seed(seed)
    LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCAB_SIZE,
            hidden_size=hidden,
            intermediate_size=3 * hidden,
            num_hidden_layers=num_layers,
            num_attention_heads=hidden // 32,
            num_key_value_heads=hidden // 64,
            max_position_embeddings=512,
            eos_token_id=EOS,
            tie_word_embeddings=True,
        )
    ).save_pretrained(folder)


def held_out_losses(folder: pathlib.Path) -> dict[str, float]:
    """The last ones of a run."""
    rows = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [row["held_out_loss"] for row in rows if "held_out_loss" in row][-1]


def run(options, model, out, steps, lr, method_flags):
    status = train(
        [
            f"--model={model}",
            f"--out={out}",
            f"--data={options.data}",
            f"--eval_data={options.held_out}",
            "--eval_strategies=" + ";".join(RETENTION),
            "--eval_tokens=65536",
            "--sequence_length=256",
            "--batch_windows=8",
            f"--steps={steps}",
            f"--lr={lr}",
            "--warmup=0.05",
            "--schedule=cosine",
            f"--seed={options.seed}",
            f"--threads={options.threads}",
            f"--p_own={options.p_own}",
            *method_flags,
        ]
    )
    if status:
        sys.exit(status)
    return held_out_losses(out)


def main():
    parser = argparse.ArgumentParser(
        prog="python -m training.table3",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--data", required=True, help="text to train on")
    add("--held_out", required=True, help="text to judge by")
    add("--out", required=True, type=pathlib.Path)
    add("--layers", type=int, default=8)
    add("--hidden", type=int, default=128)
    add("--steps", type=int, default=1500, help="of the first training")
    add("--more_steps", type=int, default=800, help="of each method")
    add("--lr", type=float, default=2e-3)
    add("--p_own", type=float, default=0.6)
    add("--seed", type=int, default=1)
    add("--threads", type=int, default=0)
    options = parser.parse_args()
    if options.layers < 1 or options.hidden < 64 or options.hidden % 64:
        parser.error("--layers is 1 or more, --hidden a multiple of 64")
    start, base = options.out / "start", options.out / "pretrained"
    make_model(start, options.layers, options.hidden, options.seed)
    run(options, start, base, options.steps, options.lr, ["--method=base"])
    rows = {
        name: run(
            options,
            base,
            options.out / name,
            options.more_steps,
            options.lr / 2,
            flags,
        )
        for name, flags in METHODS.items()
    }
    print("| method | " + " | ".join(RETENTION.values()) + " |")
    print("|---" * (1 + len(RETENTION)) + "|")
    for name, losses in rows.items():
        cells = " | ".join(f"{losses[spec]:.3f}" for spec in RETENTION)
        print(f"| {name} | {cells} |")


if __name__ == "__main__":
    main()
