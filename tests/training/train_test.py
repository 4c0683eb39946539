"""./strata train from flags to the server: toy runs on a tiny model."""
import contextlib
import io
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

import tiny_model
from training import held_out, routing
from training.byte_tokenizer import byte_tokenizer
from training.step import TrainingStep
from training.strategies import parse_strategy
from training.train import main

ROOT = pathlib.Path(__file__).absolute().parents[2]
SERVER = ROOT / "bazel-bin/server/strata_server"


def environment():
    return os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1",
                         "ACCELERATE_USE_CPU": "true"}


def command_of(flags, processes=1):
    command = [sys.executable, "-m"]
    if processes > 1:
        command += ["torch.distributed.run", "--standalone",
                    f"--nproc_per_node={processes}", "-m"]
    return [*command, "training.train", *flags]


def train(*flags):
    """Runs the command in this process; (exit status, standard error)."""
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        try:
            status = main(list(flags))
        except SystemExit as exit:
            status = exit.code
    return status, errors.getvalue()


def toy_text(lines, seed):
    """Lines that repeat a random word of four letters: only a look back
    tells the second half of each pair."""
    rng = random.Random(seed)
    words = ("".join(rng.choices("abcdefgh", k=4)) for _ in range(lines))
    return "\n".join(f"{word}={word}" for word in words) + "\n"


def losses(folder):
    """Held-out losses by step."""
    rows = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return {row["step"]: row["held_out_loss"] for row in rows
            if "held_out_loss" in row}


def step_losses(folder):
    rows = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [row["loss"] for row in rows if "loss" in row]


class TrainTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls._folder.cleanup)
        cls.work = pathlib.Path(cls._folder.name)
        cls.model = cls.work / "model"
        tiny_model.save(cls.model)
        (cls.work / "train.txt").write_text(toy_text(6000, seed=1))
        (cls.work / "held_out.txt").write_text(toy_text(300, seed=2))

    def flags(self, out, **changed):
        flags = {"model": self.model, "out": self.work / out,
                 "data": self.work / "train.txt",
                 "eval_data": self.work / "held_out.txt",
                 "eval_strategies": "full;every=2", "sequence_length": 64,
                 "batch_windows": 8, "lr": 3e-3, "precision": "f32",
                 "threads": 1} | changed
        return [f"--{name}" if value is True else f"--{name}={value}"
                for name, value in flags.items()]

    def run_ok(self, out, **changed):
        status, errors = train(*self.flags(out, **changed))
        self.assertEqual(status, 0, errors)
        return self.work / out

    def test_rcla_learns_to_share_and_base_does_not(self):
        flags = {"steps": 250, "eval_strategies": "full;leaders=0"}
        base = losses(self.run_ok("base", method="base", **flags))[250]
        rcla = losses(self.run_ok("rcla", p_own=0.5, **flags))[250]
        self.assertLess(base["full"], 1.2)  # from 5.5
        self.assertGreater(base["leaders=0"], base["full"] + 0.3)
        self.assertLess(rcla["leaders=0"], rcla["full"] + 0.15)
        self.assertLess(rcla["leaders=0"], base["leaders=0"])

    def test_interrupted_and_resumed_run_equals_the_whole(self):
        flags = {"steps": 60, "method": "rcla", "lora_rank": 2}
        whole = self.run_ok("whole", **flags)
        command = self.flags("parts", **flags)
        process = subprocess.Popen(
            command_of(command), cwd=ROOT, stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, env=environment())
        metrics = self.work / "parts/metrics.jsonl"
        while not metrics.exists() or metrics.read_text().count("\n") < 4:
            self.assertIsNone(process.poll(), "ended before it was interrupted")
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        self.assertIn("--resume", process.communicate()[1])
        self.assertEqual(process.returncode, 130)
        self.assertFalse((self.work / "parts/adapter_config.json").exists())
        parts = self.run_ok("parts", **flags, resume=True)
        steps = [json.loads(line)["step"] for line
                 in metrics.read_text().splitlines()]
        self.assertEqual(steps, [0, *range(1, 61), 60])
        got, want = (load_file(folder / "adapter_model.safetensors")
                     for folder in (parts, whole))
        self.assertEqual(got.keys(), want.keys())
        for name, tensor in want.items():
            torch.testing.assert_close(got[name], tensor, rtol=0, atol=0)

    def test_until_and_resume_equal_the_whole(self):
        flags = {"steps": 6, "method": "rcla", "lora_rank": 2}
        whole = self.run_ok("uninterrupted", **flags)
        out = self.run_ok("halves", until=4, **flags)
        self.assertFalse((out / "adapter_config.json").exists())
        self.run_ok("halves", resume=True, **flags)
        self.assertEqual(losses(out)[6], losses(whole)[6])

    def test_a_resumed_run_says_what_it_does_otherwise(self):
        flags = {"lora_rank": 2, "weight_decay": 0}
        self.run_ok("otherwise", steps=2, until=1, **flags)
        status, errors = train(*self.flags(
            "otherwise", steps=2, resume=True, **flags))
        self.assertEqual(status, 0)
        self.assertNotIn("--resume: ", errors)
        rates = []
        step = torch.optim.AdamW.step

        def spy(optimizer, *args, **named):
            rates.extend(optimizer.param_groups)
            return step(optimizer, *args, **named)

        with mock.patch.object(torch.optim.AdamW, "step", spy):
            _, errors = train(*self.flags(
                "otherwise", steps=3, resume=True, beta2=0.5, seed=7, threads=2,
                **flags))
        self.assertIn("--resume: from step 2 on with --steps=3 (was 2), "
                      "--beta2=0.5 (was 0.95), --seed=7 (was 1)\n", errors)
        self.assertEqual(rates[0]["betas"], (0.9, 0.5))

    def test_two_processes_equal_one_with_their_windows(self):
        out = self.run_ok("one", steps=3, batch_windows=4)
        one, steps = losses(out), step_losses(out)
        two = self.work / "two"
        subprocess.run(
            command_of(self.flags("two", steps=3, batch_windows=2), 2),
            cwd=ROOT, stdin=subprocess.DEVNULL, env=environment(), check=True)
        for loss, want in zip(step_losses(two), steps, strict=True):
            self.assertAlmostEqual(loss, want, delta=5e-4)
        half = losses(self.run_ok("half", steps=3, batch_windows=2))
        for spec, loss in losses(two)[3].items():
            self.assertAlmostEqual(loss, one[3][spec], delta=5e-4)
            self.assertNotAlmostEqual(loss, half[3][spec], delta=5e-4)

    def test_fsdp_equals_one_process_and_resumes(self):
        for kind in ({"lora_rank": 2, "train_norms": True},
                     {"distill_weight": 0.5}):
            with self.subTest(kind=kind):
                flags = kind | {"method": "rcla", "p_own": 0.5}
                name = next(iter(kind))
                for part in ({"steps": 2}, {"steps": 4, "resume": True}):
                    one = self.run_ok(f"{name}_one", batch_windows=4, **flags,
                                      **part)
                    subprocess.run(
                        command_of(self.flags(f"{name}_two", batch_windows=2,
                                              fsdp=True, **flags, **part), 2),
                        cwd=ROOT, stdin=subprocess.DEVNULL, env=environment(),
                        check=True)
                two = self.work / f"{name}_two"
                for spec, loss in losses(one)[4].items():
                    self.assertAlmostEqual(losses(two)[4][spec], loss,
                                           delta=5e-4)
                got, want = (load_file(next(folder.glob("*.safetensors")))
                             for folder in (two, one))
                self.assertEqual(got.keys(), want.keys())

    def test_adapter_on_the_server_has_the_trainers_loss(self):
        out = self.run_ok("adapter", steps=30, lora_rank=4, train_norms=True,
                          method="nearest", distill_weight=0.5)
        model = PeftModel.from_pretrained(self.load(self.model), out)
        self.check_server(model, f"--adapter={out}")
        untrained = self.loss(self.load(self.model), "every=2")
        self.assertGreater(abs(self.loss(model, "every=2") - untrained), 1e-2)

    def test_whole_model_on_the_server_has_the_trainers_loss(self):
        tiny_model.save(self.work / "qwen3", qwen3=True)
        out = self.run_ok("whole_model", model=self.work / "qwen3", steps=30,
                          method="cla", strategy="every=2")
        self.check_server(self.load(out), model=out)

    def load(self, folder):
        routing.register()
        return AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation=routing.ATTENTION)

    def loss(self, model, spec):
        windows = held_out.windows_of(
            (self.work / "held_out.txt").read_text(),
            byte_tokenizer(), 64, 10**9)
        return held_out.loss_under(
            TrainingStep(model, 0), windows, parse_strategy(spec, tiny_model.NUM_LAYERS))

    def check_server(self, trained, *flags, model=None):
        result = self.work / "eval.json"
        done = subprocess.run(
            ["/usr/bin/python3", "-m", "evaluation.evaluate",
             f"--model={model or self.model}", *flags, f"--server={SERVER}",
             "--server_flags=--precision=f32 --threads=1",
             "--strategies=full;every=2;leaders=0,1,4",
             f"--text={self.work / 'held_out.txt'}", "--window=64",
             f"--json={result}"], cwd=ROOT, stdin=subprocess.DEVNULL,
            capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        for row in json.loads(result.read_text())["strategies"]:
            with self.subTest(strategy=row["label"]):
                want = self.loss(trained, row["label"])
                got = row["text"]["loss"]
                self.assertLess(abs(got - want), 2e-3 * want)

    def test_mistakes_are_told_in_one_line(self):
        (self.work / "empty.txt").write_text("\n\n")
        (self.work / "short.txt").write_text("short")
        (self.work / "bad.jsonl").write_text('{"text": "a"}\n{"text": 3}\n')
        (self.work / "broken.jsonl").write_text('{"text": "a"}\n{"te')
        bare = self.work / "bare"
        bare.mkdir(exist_ok=True)
        (bare / "config.json").write_text("{}")
        for flags, words in (
                ({"data": self.work / "none.txt"}, "none.txt"),
                ({"data": self.work / "empty.txt"}, "holds no text"),
                ({"data": self.work / "bad.jsonl"}, "line 2"),
                ({"data": self.work / "broken.jsonl"}, "line 2"),
                ({"sequence_length": 513}, "context of 512"),
                ({"eval_tokens": 63}, "--eval_tokens"),
                ({"data": self.work / "short.txt"}, "--sequence_length"),
                ({"eval_data": self.work / "empty.txt"}, "holds no text"),
                ({"eval_strategies": "every=0"}, "every=0"),
                ({"method": "cla", "strategy": "leaders=0,99"}, "99"),
                ({"method": "cla"}, "--strategy"),
                ({"p_own": 1.5}, "--p_own"),
                ({"model": self.work / "none"}, "no such file"),
                ({"model": bare}, "tokenizer"),
                ({"model": self.work / "empty.txt"}, "empty.txt"),
                ({"until": 1001}, "--until"),
                ({"resume": True}, "--resume")):
            with self.subTest(flags=flags):
                status, errors = train(*self.flags("bad", **flags))
                last = errors.strip().splitlines()[-1]
                self.assertEqual(status, 2, errors)
                self.assertIn(words, last)
                self.assertNotIn("Traceback", errors)


if __name__ == "__main__":
    unittest.main()
