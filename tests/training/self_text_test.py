"""Text that the model writes itself, with a model that always writes on."""
import sys
import tempfile
import types
import unittest
from unittest import mock

from evaluation import advise, evaluate
from training import self_text
from training.self_text import SelfText

CONTEXT = 40
HEADER = "U: "
ANSWER_HEADER = " A: "


class Talkative:
    """A connection to a server where a character is a token."""

    def __init__(self):
        self.model = types.SimpleNamespace(vocab_size=128,
                                           max_model_len=CONTEXT)

    def tokenize_chat(self, content):
        return [ord(c) for c in HEADER + content + ANSWER_HEADER]

    def detokenize(self, ids):
        return "".join(map(chr, ids))

    def sample(self, ids, _, max_tokens):
        if len(ids) >= CONTEXT:
            raise AssertionError("the server refuses such a prompt")
        tokens = [ord("x")] * min(max_tokens, CONTEXT - len(ids))
        return tokens, self.detokenize(tokens)


class SelfTextTest(unittest.TestCase):

    def test_a_question_leaves_room_for_its_answer(self):
        for max_tokens in (1, CONTEXT // 2, 10 * CONTEXT):
            source = SelfText(Talkative(), seed=1, chat_fraction=1,
                              max_tokens=max_tokens)
            for index in range(3):
                document = source.document(index)
                self.assertEqual(document["kind"], "chat")
                self.assertLessEqual(document["num_tokens"], CONTEXT)
                question, answer = document["text"].split(ANSWER_HEADER)
                self.assertRegex(question, rf"^{HEADER}x+$")
                self.assertRegex(answer, "^x+$")


class CheckTest(unittest.TestCase):

    def test_a_check_starts_no_server(self):
        """./strata asks for it before it builds one."""
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as text:
            text.write("words")
            text.flush()
            for module, flags in (
                    (self_text, ["--out=/tmp/self.jsonl"]),
                    (evaluate, [f"--text={text.name}"]),
                    (advise, [f"--data={text.name}"])):
                argv = ["x", "--check_only", *flags]
                with (self.subTest(module), mock.patch.object(sys, "argv", argv),
                      mock.patch("evaluation.command_line.connection",
                                 side_effect=AssertionError)):
                    module.main()


if __name__ == "__main__":
    unittest.main()
