#!/usr/bin/python3 -B
"""Tests evaluation/answers.py against values worked by hand."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2]))
from evaluation import answers  # noqa: E402


class AnswersTest(unittest.TestCase):

    def test_normalises_case_punctuation_articles_and_blanks(self):
        for text, wanted in (
                ("The Cat", "cat"), ("a  an\tTHE\nend", "end"),
                ("U.S.A.", "usa"), ("it's 3,000!", "its 3000"),
                # Punctuation goes first, so that it can make an article.
                ("t.h.e cat", "cat"), ("theatre an-d", "theatre and"),
                ("the", ""), ("", ""), ("naïve café’s", "naïve café’s"),
                ("\"a\" or b", "or b")):
            self.assertEqual(answers.normalise(text), wanted, text)

    def test_f1_counts_words_as_often_as_both_have_them(self):
        for gold, predicted, wanted in (
                ("Denver Broncos", "the denver broncos!", 1),
                ("Denver Broncos", "Broncos", 2 / 3),  # P 1, R 1/2
                ("Broncos", "Denver Broncos won", 1 / 2),  # P 1/3, R 1
                ("a b c d", "d e f", 1 / 3),  # b c d against d e f
                ("x x y", "x x x", 2 / 3),  # two of three in common
                ("Denver", "Carolina", 0), ("", "", 1), ("", "a", 1),
                ("", "b", 0), ("b", "", 0), ("the", "", 1)):
            self.assertAlmostEqual(answers.f1(gold, predicted), wanted,
                                   msg=(gold, predicted))

    def test_the_best_reference_counts(self):
        self.assertEqual(answers.judge(("in 1066", "1066"), "1066."), (1, 1))
        exact, f1 = answers.judge(("x y z", "q", "x y"), "x")
        self.assertEqual(exact, 0)
        self.assertAlmostEqual(f1, 2 / 3)  # of "x y"

    def test_without_reference_only_silence_is_right(self):
        self.assertEqual(answers.judge((), ""), (1, 1))
        self.assertEqual(answers.judge((), " The. "), (1, 1))
        self.assertEqual(answers.judge((), "Unanswerable."), (1, 1))
        self.assertEqual(answers.judge((), "Paris"), (0, 0))
        # A reference of nothing but articles is none, as in the script.
        self.assertEqual(answers.judge(("the",), ""), (1, 1))
        self.assertEqual(answers.judge(("the", "x"), ""), (0, 0))
        self.assertEqual(answers.judge(("x",), "unanswerable"), (0, 0))


if __name__ == "__main__":
    unittest.main()
