"""The training loop."""

import contextlib
import math
import os
import signal
import sys
import time

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs
from tqdm import tqdm

from training import checkpoint, held_out, model as models, sharding
from training.checks import check_surroundings, check_tokens
from training.data import DataError, TokenWindows, read_documents, read_whole
from training.draws import make_draws
from training.metrics import Metrics
from training.options import changed_flags
from training.schedule import rate_at
from training.step import TrainingStep
from training.strategies import parse_strategy


class Interrupted(Exception):
    """SIGINT or SIGTERM came; a checkpoint was written."""


class Diverged(Exception):
    """The loss is no number any more; the message is for users."""


class Trainer:
    """Owns model, optimizer and data of one run; one object a process."""

    def __init__(self, options):
        self._options = options
        # Keys and values of a layer that nobody reads get no gradient.
        self._accelerator = Accelerator(
            gradient_accumulation_steps=options.accumulate,
            kwargs_handlers=[
                DistributedDataParallelKwargs(find_unused_parameters=True)
            ],
        )
        check_surroundings(options)
        torch.manual_seed(options.seed)
        if options.threads:
            torch.set_num_threads(options.threads)
        documents = [
            text for path in options.data for text in read_documents(path)
        ]
        self._model, self._tokenizer = self._load()
        num_layers = self._model.config.num_hidden_layers
        self._draws = make_draws(options, num_layers)
        self._windows = TokenWindows(
            documents,
            self._tokenizer,
            options.sequence_length,
            options.seed,
            shows=self._is_main,
        )
        self._held_out = self._read_held_out()
        largest = self._windows.largest_token
        if self._held_out is not None:
            largest = max(largest, self._held_out.max().item())
        check_tokens(options.model, largest, self._model.config.vocab_size)
        self._eval_sources = {
            spec: parse_strategy(spec, num_layers)
            for spec in options.eval_strategies.split(";")
            if spec
        }
        self._prepare()
        self._metrics = Metrics(options.out, self._is_main)
        self._end = options.until or options.steps
        self._stopping = False

    def run(self):
        """Trains, writes metrics.jsonl, exports to --out (not with --until).

        Raises Interrupted after the step in which a signal came; --resume goes
        on from there.
        """
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        os.makedirs(self._options.out, exist_ok=True)
        first = self._resume() if self._options.resume else 0
        if first == 0 and self._is_main:
            checkpoint.remove(self._options.out)
        self._metrics.begin(first)
        if first == 0:
            self._evaluate(0)
        begin = time.monotonic()
        with tqdm(
            total=self._options.steps,
            initial=first,
            desc="train",
            disable=not self._is_main,
            mininterval=5,
        ) as bar:
            for step in range(first, self._end):
                loss = self._one_step(step)
                stopping = self._agree_to_stop()
                bar.set_postfix(loss=f"{loss:.3f}")
                bar.update()
                self._metrics.add(
                    {
                        "step": step + 1,
                        "loss": loss,
                        "seconds": round(time.monotonic() - begin, 1),
                    }
                )
                self._after(step + 1, stopping)
                if stopping:
                    raise Interrupted
        if self._end < self._options.steps:
            return
        state = {
            name: sharding.whole(tensor)
            for name, tensor in self._plain.state_dict().items()
        }
        if self._is_main:
            models.export(
                self._plain,
                state,
                self._tokenizer,
                self._options.out,
                self._options.model,
            )

    def _resume(self):
        first, flags = checkpoint.load(
            self._options.out, self._plain, self._optimizer
        )
        if first > self._end:
            raise checkpoint.CheckpointError(
                f"--resume: the checkpoint is at step {first}, the run ends "
                f"at {self._end} (--steps, --until)"
            )
        changes = changed_flags(flags, self._options)
        if changes and self._is_main:
            print(
                f"--resume: from step {first} on with {', '.join(changes)}",
                file=sys.stderr,
            )
        return first

    @property
    def _is_main(self):
        return self._accelerator.is_main_process

    @property
    def _plain(self):
        return self._accelerator.unwrap_model(self._step).model

    def _load(self):
        options = self._options
        half = options.lora_rank > 0 and options.precision == "bf16"
        model, tokenizer = models.load(
            options.model, torch.bfloat16 if half else torch.float32
        )
        context = model.config.max_position_embeddings
        if options.sequence_length > context:
            raise models.ModelError(
                f"--sequence_length={options.sequence_length} is more than "
                f"the model's context of {context} tokens"
            )
        if options.gradient_checkpointing:
            model.gradient_checkpointing_enable({"use_reentrant": False})
            model.enable_input_require_grads()
        if options.lora_rank:
            model = models.add_lora(
                model, options.lora_rank, options.train_norms
            )
        return model, tokenizer

    def _read_held_out(self):
        if not self._options.eval_data:
            return None
        text = read_whole(self._options.eval_data)
        length = self._options.sequence_length
        windows = held_out.windows_of(
            text, self._tokenizer, length, self._options.eval_tokens
        )
        if len(windows) == 0:
            raise DataError(
                f"--eval_data={self._options.eval_data} has less than one "
                f"window of {length} tokens (--sequence_length, --eval_tokens)"
            )
        return windows

    def _prepare(self):
        options = self._options
        step = TrainingStep(self._model, options.distill_weight)
        if options.fsdp:
            sharding.shard(step, self._accelerator.device)
            self._step = step
        else:
            self._step = self._accelerator.prepare(step)
        trained = [p for p in self._model.parameters() if p.requires_grad]
        self._optimizer = torch.optim.AdamW(
            [
                {
                    "params": [p for p in trained if p.ndim > 1],
                    "weight_decay": options.weight_decay,
                },
                {
                    "params": [p for p in trained if p.ndim <= 1],
                    "weight_decay": 0,
                },
            ],
            lr=options.lr,
            betas=(0.9, options.beta2),
        )
        self._trained = trained
        if self._is_main:
            print(
                f"{sum(p.numel() for p in trained):,} trained parameters, "
                f"{self._windows.num_tokens:,} tokens of text",
                file=sys.stderr,
            )

    def _autocast(self):
        if self._options.precision == "f32":
            return contextlib.nullcontext()
        return torch.autocast(self._accelerator.device.type, torch.bfloat16)

    def _one_step(self, step):
        """One update; the mean loss of all processes."""
        options = self._options
        rate = options.lr * rate_at(
            step, options.steps, options.warmup, options.schedule
        )
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        mean = 0.0
        for part in range(options.accumulate):
            forward = step * options.accumulate + part
            sources = self._draws.at_step(options.seed, forward)
            with self._accelerator.accumulate(self._step), self._autocast():
                loss = self._step(self._batch(forward), sources)
                self._accelerator.backward(loss)
            mean += loss.item() / options.accumulate
        if self._accelerator.num_processes > 1:
            own = torch.tensor(mean, device=self._accelerator.device)
            mean = self._accelerator.reduce(own, "mean").item()
        norm = torch.nn.utils.clip_grad_norm_(self._trained, options.clip)
        # Before the update: no checkpoint shall hold what it would make.
        self._demand_finite(step, "loss", mean)
        self._demand_finite(step, "gradient", sharding.whole(norm).item())
        self._optimizer.step()
        self._optimizer.zero_grad()
        return mean

    @staticmethod
    def _demand_finite(step, what, value):
        if not math.isfinite(value):
            raise Diverged(
                f"the {what} of step {step + 1} is {value}; --resume goes on "
                "from the last checkpoint, a lower --lr may help"
            )

    def _batch(self, forward):
        """The windows of this process, [batch_windows, length]."""
        size = self._options.batch_windows
        ranks = self._accelerator.num_processes
        first = (forward * ranks + self._accelerator.process_index) * size
        return torch.stack(
            [self._windows.window(first + index) for index in range(size)]
        ).to(self._accelerator.device)

    def _after(self, done, stopping):
        options = self._options
        last = done == self._end
        if last or stopping or done % options.save_every == 0:
            checkpoint.save(
                options.out,
                self._plain,
                self._optimizer,
                done,
                vars(options),
                self._is_main,
            )
        if last or (options.eval_every and done % options.eval_every == 0):
            self._evaluate(done)

    def _stop(self, number, _):
        self._stopping = True
        signal.signal(number, signal.SIG_DFL)  # the next one ends at once

    def _agree_to_stop(self):
        """Whether a signal has come to any process.

        It reaches the processes at different times, also while they reduce or
        evaluate.  So this answer alone holds for the step: all write the
        checkpoint after the same one.
        """
        if self._accelerator.num_processes == 1:
            return self._stopping
        flag = torch.tensor(
            float(self._stopping), device=self._accelerator.device
        )
        return bool(self._accelerator.reduce(flag, "sum") > 0)

    def _evaluate(self, done):
        if self._held_out is None:
            return
        with self._autocast():
            losses = {
                spec: round(
                    held_out.loss_under(
                        self._step,
                        self._held_out.to(self._accelerator.device),
                        sources,
                    ),
                    4,
                )
                for spec, sources in self._eval_sources.items()
            }
        self._step.train()
        self._metrics.add({"step": done, "held_out_loss": losses})
        if self._is_main:
            text = ", ".join(f"{s} {loss:.3f}" for s, loss in losses.items())
            tqdm.write(f"step {done}, held-out loss: {text}", sys.stderr)
