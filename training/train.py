"""`./strata train`: stochastic KV routing for a public checkpoint."""

import os
import sys

from evaluation.failure import BadInput, told
from training import options as flags

os.environ["HF_HUB_OFFLINE"] = "1"  # all that is needed is in the files given
os.environ["TQDM_DISABLE"] = "1"  # the libraries' bars; ours says otherwise


def main(arguments: list[str] | None = None) -> int:
    try:
        options = flags.parse(arguments)
    except BadInput as error:
        print(f"strata train: {error}", file=sys.stderr)
        return error.status
    if options.check_only:
        return 0
    try:
        return _train(options)
    except KeyboardInterrupt:  # before the first step
        print("strata train: interrupted", file=sys.stderr)
        return 130


def _train(options):
    if os.environ.get("RANK", "0") == "0":
        print(f"loading PyTorch and {options.model}", file=sys.stderr)
    # After the flags: importing torch takes seconds.
    from training.checkpoint import CheckpointError
    from training.checks import RunError
    from training.data import DataError
    from training.model import ModelError
    from training.strategies import StrategyError
    from training.trainer import Diverged, Interrupted, Trainer

    try:
        Trainer(options).run()
    except (
        CheckpointError,
        DataError,
        ModelError,
        RunError,
        StrategyError,
    ) as error:
        print(f"strata train: {error}", file=sys.stderr)
        return 2
    except Diverged as error:
        print(f"strata train: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"strata train: {told(error)}", file=sys.stderr)
        return 1
    except (MemoryError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        print(
            "strata train: out of memory; less is taken by smaller "
            "--batch_windows, --sequence_length or --lora_rank, and by "
            "--gradient_checkpointing",
            file=sys.stderr,
        )
        return 1
    except Interrupted:
        print(
            "strata train: interrupted; the same command with --resume goes on",
            file=sys.stderr,
        )
        return 130
    return 0


def _is_out_of_memory(error):
    """PyTorch has a type of its own for that on GPUs only."""
    words = ("out of memory", "can't allocate memory")
    return isinstance(error, MemoryError) or any(
        word in str(error) for word in words
    )


if __name__ == "__main__":
    sys.exit(main())
