"""What a user, a signal or a full disk does to ./strata train."""
import contextlib
import io
import json
import os
import pathlib
import signal
import tempfile
import unittest
from unittest import mock

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

import tiny_model
from training import checkpoint, trainer
from training.data import DataError, read_documents, read_whole
from training.train import main


def train(flags):
    """Exit status and last line of standard error."""
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        try:
            status = main([name if value is True else f"{name}={value}"
                           for name, value in flags.items()])
        except SystemExit as ended:
            status = ended.code
    return status, errors.getvalue().strip().splitlines()[-1]


class BadInputTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)
        self.model, self.out = self.work / "model", self.work / "out"
        tiny_model.save(self.model)
        self.data = self.work / "text.txt"
        self.data.write_text("some words of a text. " * 40)

    def run_with(self, **changed):
        flags = {"model": self.model, "out": self.out, "data": self.data,
                 "steps": 3, "sequence_length": 32, "batch_windows": 2,
                 "lr": 1e-3, "precision": "f32", "threads": 1} | changed
        return train({f"--{name}": value for name, value in flags.items()})

    def check(self, status, words, **flags):
        got, line = self.run_with(**flags)
        self.assertEqual(got, status, line)
        self.assertIn(words, line)

    def test_flags(self):
        for name, values in {
                "lr": ("nan", "inf", -1, 0), "clip": ("nan", 0),
                "warmup": ("nan", -1, 2), "save_every": (0, -1),
                "eval_every": (-1,), "eval_tokens": (-1,),
                "beta2": (1, "nan"), "weight_decay": (-1, "nan"),
                "threads": (-1, 10**12), "seed": (-1, 2**70),
                "until": (-1, 4), "fsdp": (True,)}.items():
            for value in values:
                with self.subTest(flag=name, value=value):
                    self.check(2, f"--{name}", **{name: value})
        self.check(2, "--mix", method="strategies", mix="full:inf")
        self.check(2, "--strategy goes with", strategy="every=2")
        self.check(2, "--train_norms goes with", train_norms=True)

    def test_folders_that_cannot_be(self):
        for out in ("", self.data):
            self.check(2, "must be a folder", out=out)
        for out in (self.data / "out", self.data / "out" / "deep"):
            self.check(2, "cannot be written", out=out)
        self.check(1, "strata train: /proc/out: No such file", out="/proc/out")

    def test_the_umask_says_who_reads_the_result(self):
        old = os.umask(0o027)
        self.addCleanup(os.umask, old)
        for rank, name in ((2, "adapter_model"), (0, "model")):
            self.assertEqual(self.run_with(lora_rank=rank)[0], 0)
            path = self.out / f"{name}.safetensors"
            self.assertEqual(path.stat().st_mode & 0o777, 0o640)

    def test_more_than_the_memory(self):
        self.check(1, "out of memory", lora_rank=2**31 - 1)

    def test_records_that_json_or_utf8_cannot_hold(self):
        path = self.work / "bad.jsonl"
        for content in ("[" * 100000, '{"text": "a", "n": ' + "1" * 5000 + "}",
                        '{"text": "\\ud800"}'):
            path.write_text(content)
            with self.subTest(content=content[:20]):
                with self.assertRaisesRegex(DataError, "line 1"):
                    read_documents(str(path))

    def test_held_out_text_is_taken_as_it_is(self):
        text = "\ufeffa\r\n\r\n\r\nb\n\n\n\nc\rd "
        self.data.write_bytes(text.encode())
        self.assertEqual(read_whole(str(self.data)), text)

    def change_weights(self, change):
        path = self.model / "model.safetensors"
        tensors = load_file(path)
        change(tensors)
        save_file(tensors, path, {"format": "pt"})

    def test_models(self):
        config = json.loads((self.model / "config.json").read_text())
        for changed, words in (({"hidden_size": 128}, "size mismatch"),
                               ({"hidden_size": "big"}, "TypeError"),
                               ({"num_hidden_layers": 7}, "lacks the tensor")):
            with self.subTest(changed=changed):
                (self.model / "config.json").write_text(
                    json.dumps(config | changed))
                self.check(2, words)
        (self.model / "config.json").write_text(json.dumps(config))
        name = "model.layers.2.self_attn.k_proj.weight"
        self.change_weights(lambda tensors: tensors.pop(name))
        self.check(2, f"lacks the tensor {name}")
        (self.model / "model.safetensors").write_bytes(b"\xff" * 100)
        self.check(2, "SafetensorError")
        (self.model / "tokenizer.json").write_text("{")
        self.check(2, "has no tokenizer")
        self.check(2, "no GGUF file", model=self.data)

    def test_a_tokenizer_of_another_model(self):
        config = json.loads((self.model / "config.json").read_text())
        (self.model / "config.json").write_text(
            json.dumps(config | {"vocab_size": 200}))
        name = "model.embed_tokens.weight"
        self.change_weights(lambda tensors: tensors.update(
            {name: tensors[name][:200].clone()}))
        self.check(2, "makes token")

    def test_a_loss_that_is_no_number_ends_the_run(self):
        self.change_weights(
            lambda tensors: tensors["model.norm.weight"].fill_(torch.nan))
        self.check(1, "loss of step 1 is nan")
        self.assertFalse((self.out / "model.safetensors").exists())

    def test_a_gradient_that_is_no_number_is_in_no_checkpoint(self):
        self.assertEqual(self.run_with(until=2)[0], 0)
        state = self.out / "checkpoint/state.pt"
        before = state.read_bytes()
        with mock.patch("torch.nn.utils.clip_grad_norm_",
                        return_value=torch.tensor(torch.inf)):
            self.check(1, "gradient of step 3 is inf", resume=True,
                       save_every=1)
        self.assertEqual(state.read_bytes(), before)

    def test_the_model_s_folder_and_a_readme_stay(self):
        self.check(2, "own folder", out=self.model)
        self.out.mkdir()
        (self.out / "README.md").write_text("mine")
        self.assertEqual(self.run_with(lora_rank=2)[0], 0)
        self.assertEqual((self.out / "README.md").read_text(), "mine")

    def test_checkpoints_that_do_not_fit(self):
        self.assertEqual(self.run_with(until=2)[0], 0)
        self.check(2, "at step 2", until=1, resume=True)
        (self.out / "checkpoint/state.pt").write_bytes(b"\xff" * 100)
        self.check(2, "damaged", resume=True)

    def test_a_new_run_forgets_the_checkpoint_of_an_old_one(self):
        self.assertEqual(self.run_with()[0], 0)
        with mock.patch.object(checkpoint, "save", side_effect=OSError("no")):
            self.check(1, "no", save_every=1)
        self.check(2, "--resume", resume=True)

    def test_a_full_disk(self):
        with mock.patch("torch.save", side_effect=self.write_half):
            self.check(1, "disk full")
        self.assertEqual(list((self.out / "checkpoint").iterdir()), [])
        for rank in (0, 2):
            with mock.patch("safetensors.torch.serialize_file",
                            side_effect=SafetensorError("no space")):
                self.check(1, "no space", lora_rank=rank)

    def write_half(self, _, path):
        pathlib.Path(path).write_bytes(b"half")
        raise RuntimeError("enforce fail")

    def test_a_signal_while_held_out_text_is_measured(self):
        measured = []

        def interrupt(*_):
            measured.append(1)
            if len(measured) == 2:  # after the first step
                os.kill(os.getpid(), signal.SIGINT)
            return 1.0

        flags = {"eval_data": self.data, "eval_strategies": "full",
                 "eval_every": 1}
        old = signal.getsignal(signal.SIGINT)
        with mock.patch.object(trainer.held_out, "loss_under", interrupt):
            self.check(130, "--resume", **flags)
        signal.signal(signal.SIGINT, old)
        self.assertEqual(self.run_with(resume=True, **flags)[0], 0)

    def test_ctrl_c_before_the_first_step(self):
        with mock.patch("training.trainer.Trainer",
                        side_effect=KeyboardInterrupt):
            self.check(130, "interrupted")


if __name__ == "__main__":
    unittest.main()
