#!/usr/bin/python3 -B
"""Tests evaluation/questions.py."""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2]))
from evaluation import questions  # noqa: E402
from evaluation.failure import BadInput  # noqa: E402

SQUAD = {"version": "v2.0", "data": [{"title": "t", "paragraphs": [
    {"context": "It rained.", "qas": [
        {"id": "1", "question": "What?", "is_impossible": False,
         "answers": [{"text": "rain", "answer_start": 3},
                     {"text": "It rained", "answer_start": 0}]},
        {"id": "2", "question": "Who?", "is_impossible": True, "answers": [],
         "plausible_answers": [{"text": "It", "answer_start": 0}]}]},
    {"context": "Snow.", "qas": [
        {"id": "3", "question": "Why?", "answers": []}]}]}]}

HOTPOT = [{"_id": "x", "question": "Which?", "answer": "yes", "type": "bridge",
           "supporting_facts": [["A", 0]],
           "context": [["A", ["One. ", "Two."]], ["B", ["Three."]]]}]


class QuestionsTest(unittest.TestCase):

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = pathlib.Path(scratch.name) / "questions.json"

    def read(self, content):
        self.path.write_text(content if isinstance(content, str)
                             else json.dumps(content), encoding="utf-8")
        return questions.read_questions(str(self.path))

    def test_reads_squad(self):
        self.assertEqual(self.read(SQUAD), [
            questions.Question("It rained.", "What?", ("rain", "It rained")),
            questions.Question("It rained.", "Who?", ()),
            questions.Question("Snow.", "Why?", ())])

    def test_reads_hotpot(self):
        self.assertEqual(self.read(HOTPOT), [questions.Question(
            "A: One. Two.\nB: Three.", "Which?", ("yes",))])

    def test_refuses_what_is_neither(self):
        entry = HOTPOT[0]
        for content, message in (
                ("{", "not JSON"), ("\"text\"", "neither SQuAD"),
                ({"data": 3}, "neither SQuAD"), ({"data": []}, "no questions"),
                ([], "no questions"), ({"data": [{}]}, "lacks 'paragraphs'"),
                ([{"question": "q", "context": []}], "lacks 'answer'"),
                ([3], "neither"), ([{**entry, "context": [["A"]]}], "neither"),
                ([{**entry, "context": "text"}], "neither"),
                ([{**entry, "answer": 3}], "neither"),
                ([{**entry, "answer": "\ud800"}], "neither"),
                ({"data": [3]}, "neither")):
            with self.assertRaisesRegex(BadInput, message):
                self.read(content)
        for content in (b"\xff", b"[" * 100000, b"[" + b"1" * 5000 + b"]"):
            self.path.write_bytes(content)
            with self.assertRaisesRegex(BadInput, "not JSON"):
                questions.read_questions(str(self.path))
        with self.assertRaisesRegex(BadInput, "No such file"):
            questions.read_questions(str(self.path) + "x")

    def test_choice_depends_on_the_seed_alone(self):
        everything = list(range(100))
        some = questions.choose(everything, 10, 1)
        self.assertEqual(some, questions.choose(everything, 10, 1))
        self.assertEqual(some, sorted(set(some)))
        self.assertEqual(len(some), 10)
        self.assertNotEqual(some, questions.choose(everything, 10, 2))
        for count in (0, 100, 101):
            self.assertEqual(questions.choose(everything, count, 1), everything)


if __name__ == "__main__":
    unittest.main()
