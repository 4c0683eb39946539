"""The flags of `./strata train`."""

import argparse
import math
import os

from evaluation.command_line import Parser, can_write

METHODS = ("rcla", "base", "cla", "rdcla", "nearest", "strategies")

LARGE = 2**31 - 1
RANGES = (  # flags, least and most
    ("steps batch_windows accumulate save_every eval_tokens", 1, LARGE),
    ("until lora_rank eval_every weight_decay seed", 0, LARGE),
    ("sequence_length", 2, LARGE),
    ("p_own distill_weight warmup", 0, 1),
    ("threads", 0, 1024),
)


class Help(argparse.RawTextHelpFormatter):
    """Shows defaults."""

    def _get_help_string(self, action):
        if action.default in (None, False, argparse.SUPPRESS):
            return action.help
        return f"{action.help} [%(default)s]"


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Raises BadInput, in one line, for what can be seen without the model."""
    parser = Parser(
        prog="./strata train",
        allow_abbrev=False,
        formatter_class=Help,
        description="Trains a model so that layers can read an earlier layer's "
        "KV cache\n(R-CLA, arXiv 2604.22782, and what goes beyond it).",
    )
    _add_model(parser)
    _add_method(parser)
    _add_objective(parser)
    _add_optimizer(parser)
    _add_run(parser)
    options = parser.parse_args(arguments)
    for names, low, high in RANGES:
        for name in names.split():
            if not low <= getattr(options, name) <= high:  # NaN fails
                parser.error(f"--{name} is {_range_text(low, high)}")
    if not 0 < options.lr < math.inf:
        parser.error("--lr is a number above 0")
    if not options.clip > 0:
        parser.error("--clip is above 0; inf: none")
    if not 0 <= options.beta2 < 1:
        parser.error("--beta2 is from 0 to below 1")
    # Without --model ./strata adds the demo model, which it fetches later.
    if not (options.model or options.check_only):
        parser.error("the following arguments are required: --model")
    if options.model and not os.path.exists(options.model):
        parser.error(f"--model={options.model}: no such file or directory")
    if options.until > options.steps:
        parser.error(f"--until is from 1 to --steps={options.steps}")
    if options.method in ("cla", "rdcla") and not options.strategy:
        parser.error(
            f"--method={options.method} needs --strategy, e.g. every=2"
        )
    if options.strategy and options.method not in ("cla", "rdcla"):
        parser.error("--strategy goes with --method=cla and --method=rdcla")
    if options.train_norms and not options.lora_rank:
        parser.error("--train_norms goes with --lora_rank")
    if not options.out or os.path.isfile(options.out):
        parser.error(f"--out={options.out}: must be a folder")
    if not can_write(options.out):
        parser.error(f"--out={options.out}: cannot be written")
    for name in ("data", "eval_data"):
        paths = getattr(options, name) or []
        for path in [paths] if isinstance(paths, str) else paths:
            if not os.path.isfile(path):
                parser.error(f"--{name}={path}: no such file")
    return options


# Flags that do not change what a step does to the model.
WITHOUT_EFFECT = (
    "out resume until threads check_only fsdp gradient_checkpointing save_every "
    "eval_data eval_strategies eval_every eval_tokens"
).split()


def changed_flags(before: dict, options: argparse.Namespace) -> list[str]:
    """What a resumed run does otherwise than the one that wrote `before`."""
    return [
        f"--{name}={value} (was {before[name]})"
        for name, value in vars(options).items()
        if name in before
        and before[name] != value
        and name not in WITHOUT_EFFECT
    ]


def _range_text(low, high):
    return f"at least {low}" if high == LARGE else f"from {low} to {high}"


def _add_model(parser):
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model",
        help="a Hugging Face directory or a .gguf file [the demo model]",
    )
    group.add_argument(
        "--out",
        required=True,
        help="folder for the result: "
        "a PEFT adapter with --lora_rank,\nelse a model",
    )
    group.add_argument(
        "--data",
        required=True,
        action="append",
        help=".jsonl with text, or context, question and "
        "answer; or .txt.\nMay be repeated",
    )
    group.add_argument(
        "--lora_rank",
        type=int,
        default=0,
        help="train a LoRA of this rank on all linear layers; "
        "0: all parameters",
    )
    group.add_argument(
        "--train_norms",
        action="store_true",
        help="with --lora_rank: train the norms too",
    )


def _add_method(parser):
    group = parser.add_argument_group("method: who reads whom in a step")
    group.add_argument(
        "--method",
        choices=METHODS,
        default="rcla",
        help="rcla: own KV with --p_own, else any earlier layer's (the paper)\n"
        "base: own KV always\ncla: --strategy always\n"
        "rdcla: own KV with --p_own, else the leader under --strategy\n"
        "nearest: a leader with --p_own, else the nearest leader before\n"
        "strategies: one of --mix",
    )
    group.add_argument(
        "--p_own",
        type=float,
        default=0.6,
        help="probability of a layer's own KV (the paper's p of " "section 3)",
    )
    group.add_argument("--strategy", help="of cla and rdcla, e.g. every=2")
    group.add_argument(
        "--mix",
        default="full:1;every=2:2;nearest:2",
        help="of strategies: SPEC:WEIGHT;...; 'nearest' and 'rcla' draw with "
        "--p_own",
    )


def _add_objective(parser):
    group = parser.add_argument_group("objective")
    group.add_argument(
        "--distill_weight",
        type=float,
        default=0.0,
        help="0: cross-entropy; 1: Kullback-Leibler distance "
        "from the unmodified\nmodel under full; between: both",
    )


def _add_optimizer(parser):
    group = parser.add_argument_group("optimizer (AdamW, the paper's defaults)")
    group.add_argument("--steps", type=int, default=1000, help="updates")
    group.add_argument(
        "--batch_windows",
        type=int,
        default=4,
        help="windows a step and process",
    )
    group.add_argument(
        "--accumulate",
        type=int,
        default=1,
        help="forward passes a step, each of --batch_windows",
    )
    group.add_argument(
        "--sequence_length", type=int, default=512, help="tokens of a window"
    )
    group.add_argument(
        "--lr",
        type=float,
        default=5e-6,
        help="at its highest; a LoRA wants some 2e-3",
    )
    group.add_argument(
        "--warmup",
        type=float,
        default=0.015,
        help="part of the steps with a rising rate",
    )
    group.add_argument(
        "--schedule",
        choices=("linear", "cosine"),
        default="linear",
        help="of the falling rate, to 0",
    )
    group.add_argument(
        "--beta2", type=float, default=0.95, help="beta1 is 0.9"
    )
    group.add_argument(
        "--weight_decay", type=float, default=0.1, help="of matrices"
    )
    group.add_argument("--clip", type=float, default=1.0, help="gradient norm")


def _add_run(parser):
    group = parser.add_argument_group("run")
    group.add_argument(
        "--seed", type=int, default=1, help="of windows, draws and the LoRA"
    )
    group.add_argument(
        "--precision",
        choices=("bf16", "f32"),
        default="bf16",
        help="of matrix products, and of what a LoRA leaves as it is",
    )
    group.add_argument(
        "--gradient_checkpointing",
        action="store_true",
        help="less memory, more work",
    )
    group.add_argument(
        "--fsdp",
        action="store_true",
        help="several processes: split parameters, gradients and optimizer\n"
        "state over them (FSDP)",
    )
    group.add_argument("--threads", type=int, default=0, help="0: all cores")
    group.add_argument(
        "--save_every",
        type=int,
        default=100,
        help="steps between checkpoints in OUT/checkpoint",
    )
    group.add_argument(
        "--until",
        type=int,
        default=0,
        help="stop after this step with a checkpoint, for time limits and\n"
        "for other --data from there on with --resume",
    )
    group.add_argument(
        "--resume", action="store_true", help="go on from OUT/checkpoint"
    )
    group.add_argument("--eval_data", help=".txt or .jsonl of held-out text")
    group.add_argument(
        "--eval_strategies",
        default="full;every=2;every=3;every=4",
        help="under which --eval_data is measured",
    )
    group.add_argument(
        "--eval_every",
        type=int,
        default=0,
        help="steps; 0: at the beginning and the end",
    )
    group.add_argument(
        "--eval_tokens", type=int, default=16384, help="of --eval_data"
    )
    # Says what is wrong before ./strata installs PyTorch.
    group.add_argument(
        "--check_only", action="store_true", help=argparse.SUPPRESS
    )
