#!/usr/bin/python3 -B
"""Tests eval and advise against the real server with tiny models."""

import contextlib
import io
import json
import math
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))
import tiny_models  # noqa: E402
from evaluation import advise, command_line, evaluate, text  # noqa: E402
from evaluation import question_answering, text_loss  # noqa: E402
from evaluation.connection import Connection  # noqa: E402
from evaluation.failure import Failure  # noqa: E402
from evaluation.progress import Progress  # noqa: E402
from evaluation.questions import Question  # noqa: E402
from evaluation.server_process import ServerProcess  # noqa: E402

SERVER = tiny_models.ROOT / "server/strata_server"
FLAGS = ["--precision=f32", "--threads=1", "--kv_memory=16MiB"]

WORDS = ("the cat sat on a mat, and 37 dogs ran; it's over. Why? "
         "Rain falls in spain mainly.\n").split(" ")
TEXT = " ".join(WORDS[(i * i + i // 7) % len(WORDS)] for i in range(900))

QUESTIONS = {"data": [{"paragraphs": [{"context": "The cat sat.", "qas": [
    {"question": "Who sat?", "answers": [{"text": "cat"}]},
    {"question": "Who ran?", "answers": []}]}]}]}


def run(verb, *flags):
    """Exit status, standard output, standard error."""
    main = {"eval": evaluate.main, "advise": advise.main}[verb]
    out, err = io.StringIO(), io.StringIO()
    with (mock.patch.object(sys, "argv", [verb, *map(str, flags)]),
          contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)):
        status = command_line.run(verb, main)
    return status, out.getvalue(), err.getvalue()


class GoldenTest(unittest.TestCase):

    def test_loss_is_pytorch_s(self):
        with ServerProcess(SERVER, [f"--model={tiny_models.GOLDEN}", *FLAGS]
                           ) as server, Connection(server.address, 4) as to:
            prompt = tiny_models.golden_prompt()
            for spec, num_leaders in (("full", 8), ("every=3", 3),
                                      ("leaders=0,2,5", 3)):
                strategy = to.strategy("x", spec)
                self.assertEqual(strategy.canonical, spec)
                self.assertEqual(strategy.num_leaders, num_leaders)
                self.assertEqual(strategy.kv_bytes_per_token,
                                 num_leaders * 2 * 2 * 16 * 4)
                loss = text_loss.measure(to, strategy, [prompt] * 3,
                                         Progress("", 3, io.StringIO()))
                self.assertAlmostEqual(
                    loss.loss, tiny_models.golden_loss(spec), delta=1e-4)
                self.assertEqual(loss.num_tokens, 3 * (len(prompt) - 1))
                self.assertAlmostEqual(loss.perplexity, math.exp(loss.loss))

    def test_a_full_queue_is_waited_for(self):
        with ServerProcess(
            SERVER, [f"--model={tiny_models.GOLDEN}", *FLAGS,
                     "--max_sequences=1", "--max_queued_requests=1"]
        ) as server, Connection(server.address, 16) as to:
            responses = to.run_all(lambda _: to.score([1, 2, 3] * 60, "full"),
                                   range(100))
            self.assertEqual(len({response.sum_logprob
                                  for response in responses}), 1)

    def test_a_message_too_long_for_the_server_is_not_sent_again(self):
        with ServerProcess(
            SERVER, [f"--model={tiny_models.GOLDEN}", *FLAGS,
                     "--max_message_mib=1"]
        ) as server, Connection(server.address, 1) as to:
            with self.assertRaisesRegex(Failure, "larger than max"):
                to.score([1] * 2_000_000, "full")

    def test_a_server_that_dies(self):
        with self.assertRaisesRegex(Failure, "a call of the server at "
                                    "127.0.0.1:[0-9]+ failed: "):
            with ServerProcess(
                SERVER, [f"--model={tiny_models.GOLDEN}", *FLAGS]
            ) as server, Connection(server.address, 1) as to:
                os.kill(server._process.pid, signal.SIGKILL)
                for _ in range(1000):
                    to.score([1] * 60, "full")

    def test_a_model_without_tokenizer_is_refused_in_one_line(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(TEXT)
            file.flush()
            for verb, flag in (("eval", "text"), ("advise", "data")):
                status, _, err = run(
                    verb, f"--model={tiny_models.GOLDEN}", f"--server={SERVER}",
                    "--server_flags=--threads=1", f"--{flag}={file.name}",
                    "--window=64")
                self.assertEqual(status, 2)
                self.assertRegex(err, r"\nstrata \w+: the server at .* says: "
                                 "the model has no tokenizer.*\n$")


class TextModelTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        tiny_models.write_text_model(cls.folder / "model")
        (cls.folder / "text.txt").write_text(TEXT)
        (cls.folder / "short.txt").write_text("one window")
        (cls.folder / "qa.json").write_text(json.dumps(QUESTIONS))
        cls.server = cls.enterClassContext(ServerProcess(
            SERVER, [f"--model={cls.folder}/model", *FLAGS]))
        cls.to = cls.enterClassContext(Connection(cls.server.address, 4))

    def run_json(self, verb, *flags):
        path = self.folder / "out.json"
        status, out, err = run(verb, f"--target={self.server.address}",
                               f"--json={path}", *flags)
        self.assertEqual(status, 0, err)
        return json.loads(path.read_text()), out

    def loss_of(self, windows, spec):
        """By one call a window, with the answer's own sum."""
        total = sum(self.to.score(window, spec).sum_logprob
                    for window in windows)
        return -total / sum(len(window) - 1 for window in windows)

    def test_pieces_have_the_tokens_of_the_whole(self):
        whole = self.to.tokenize(TEXT)
        for size in (1, 37, 1000):
            ids = []
            for piece in text.pieces(TEXT, size):
                ids += self.to.tokenize(piece)
            self.assertEqual(ids, whole, size)

    def test_eval_gives_what_the_api_gives(self):
        result, out = self.run_json(
            "eval", "--strategies=full;half=every=2", "--window=64",
            f"--text={self.folder}/text.txt", f"--qa={self.folder}/qa.json",
            "--max_answer_tokens=5", "--max_tokens=300")
        ids = self.to.tokenize(TEXT)
        windows = [ids[64 * i:64 * i + 64] for i in range(300 // 64)]
        for row, label, num_leaders in zip(
                result["strategies"], ("full", "half"), (6, 3), strict=True):
            self.assertEqual((row["label"], row["num_leaders"]),
                             (label, num_leaders))
            self.assertAlmostEqual(row["text"]["loss"],
                                   self.loss_of(windows, row["spec"]))
            self.assertEqual(row["text"]["num_tokens"], 4 * 63)
            self.assertEqual(row["saved"], 1 - num_leaders / 6)
            self.assertEqual(row["qa"]["num_questions"], 2)
            self.assertAlmostEqual(row["qa"]["loss"],
                                   self.answer_loss(row["spec"]))
            self.assertIn(f"| `{label}` ", out)
        self.assertNotEqual(*(row["text"]["loss"]
                              for row in result["strategies"]))

    def answer_loss(self, spec):
        """Of " cat" after the first question's prompt."""
        prompt = ("Context: The cat sat.\n\nQuestion: Who sat?\n\nAnswer:")
        ids = self.to.tokenize(prompt)
        whole = self.to.tokenize(prompt + " cat")
        self.assertEqual(whole[:len(ids)], ids)
        before, after = (self.to.score(tokens, spec).sum_logprob
                         for tokens in (ids, whole))
        return (before - after) / (len(whole) - len(ids))

    def test_chat_prompts_use_the_template(self):
        prompt, = question_answering.prepare(
            self.to, [Question("It rained.", "What?", ("rain",))], "chat", 5)
        shown = self.to._call(  # with its control tokens
            self.to._inference.Detokenize,
            self.to._pb.DetokenizeRequest(token_ids=prompt.ids)).text
        self.assertTrue(shown.startswith("<|im_start|>user\nIt rained.\n\n"
                                         "Question: What?"))
        self.assertTrue(shown.endswith("<|im_end|>\n<|im_start|>assistant\n"))
        self.assertEqual(prompt.answer_ids, self.to.tokenize("rain"))

    def test_questions_longer_than_the_context_are_left_out(self):
        short = Question("x", "y", ())
        prompts = question_answering.prepare(
            self.to, [short, Question("x " * 600, "y", ()), short], "plain", 5)
        self.assertEqual(len(prompts), 2)

    def test_figures_of_a_model_whose_name_is_no_formula(self):
        model = self.folder / "a$x_$b^"
        shutil.copytree(self.folder / "model", model)
        status, _, err = run(
            "eval", f"--model={model}", f"--server={SERVER}",
            "--server_flags=--threads=1", f"--text={self.folder}/text.txt",
            "--window=64", f"--plot={self.folder}/plot.png")
        self.assertEqual(status, 0, err)
        self.assertTrue((self.folder / "plot.png").exists())

    def test_what_was_found_is_kept_if_the_server_registers_nothing(self):
        path = self.folder / "kept.json"
        with mock.patch.object(Connection, "register",
                               side_effect=Failure("no admin")):
            status, _, err = run(
                "advise", f"--target={self.server.address}",
                f"--data={self.folder}/text.txt", "--max_kv=0.8",
                "--window=32", "--search_tokens=32", "--heldout_tokens=32",
                "--register", f"--json={path}")
        self.assertEqual((status, "no admin" in err), (1, True))
        self.assertIn("frontier", json.loads(path.read_text()))

    def test_advise_is_no_worse_than_every_n_and_prints_strategies(self):
        result, out = self.run_json(
            "advise", f"--data={self.folder}/text.txt", "--max_kv=34%",
            "--window=32", "--search_tokens=256", "--heldout_tokens=256",
            "--max_loss_increase=50%", "--register")
        self.assertEqual(result["num_search_windows"], 8)
        frontier = result["frontier"]
        self.assertEqual([point["num_leaders"] for point in frontier],
                         [6, 5, 4, 3, 2])
        found = {point["num_leaders"]: point for point in frontier}
        for rival in result["every"]:
            point = found[rival["num_leaders"]]
            self.assertLessEqual(point["search_loss"], rival["search_loss"])
        self.check_heldout(frontier)
        for point in frontier:
            self.assertIn(f"`{point['name']}={point['spec']}`", out)
        self.assertRegex(out, r'\n  --strategies="kv\d\d=leaders=0[,\d]*"\n')
        registered = {info.name: list(info.sources) for info in self.to._call(
            self.to._inference.GetModel,
            self.to._pb.GetModelRequest()).strategies}
        self.assertLess({"kv83", "kv67", "kv50", "kv33"}, set(registered))
        self.assertEqual(
            found[3]["spec"], "leaders=" + ",".join(
                map(str, sorted(set(registered["kv50"])))))

    def check_heldout(self, frontier):
        """On windows that no search saw."""
        ids = self.to.tokenize(TEXT)
        windows = [ids[begin:begin + 32]
                   for begin in range(0, len(ids) - 31, 32)]
        border = round(0.6 * len(windows))
        rest = windows[border:]
        self.assertGreaterEqual(len(rest), 8)
        chosen = random.Random(1).sample(rest, 8)
        for point in frontier:
            self.assertAlmostEqual(point["heldout_loss"],
                                   self.loss_of(chosen, point["spec"]))

    def test_what_a_user_can_do_wrong_is_one_line(self):
        at = f"--target={self.server.address}"
        content = f"--text={self.folder}/text.txt"
        data = f"--data={self.folder}/text.txt"
        for verb, flags, message in (
                ("eval", (at, content, "--strategies=full;qarter"),
                 "strategy 'qarter': "),
                ("eval", (at, content, "--strategies=leaders=0,6"),
                 "strategy 'leaders=0,6': "),
                ("eval", (at, content, "--max_tokens=511"),
                 "511 tokens are less than one window of 512"),
                ("eval", (at, content, "--window=513"), "context of 512"),
                ("advise", (at, f"--data={self.folder}/short.txt"),
                 "short.txt: fills 0 windows of 128 tokens, 2 are needed"),
                ("advise", (at, data, "--window=513"), "context of 512"),
                ("eval", (at, content, "--plot=x.bmp"), "end with .png"),
                ("eval", (at, content, f"--json={self.folder}"), "a folder"),
                ("eval", ("--model=/", content, "--server_flags='"),
                 "No closing quotation"),
                ("eval", ("--target=127.0.0.1:1", content),
                 "no server answers at 127.0.0.1:1"),
                ("eval", ("--model=/nowhere", content),
                 "--model=/nowhere: no such file"),
                ("eval", (f"--model={self.folder}", f"--server={SERVER}",
                          content),
                 f"the server did not come up: strata_server: {self.folder}"),
        ):
            with mock.patch("evaluation.connection.CONNECT_SECONDS", 1):
                status, out, err = run(verb, *flags)
            self.assertIn(status, (1, 2))
            self.assertEqual(out, "")
            last = err.splitlines()[-1]
            self.assertTrue(last.startswith(f"strata {verb}: "), err)
            self.assertIn(message, last)
            self.assertNotIn("Traceback", err)


if __name__ == "__main__":
    unittest.main()
