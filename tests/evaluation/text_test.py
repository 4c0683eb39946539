#!/usr/bin/python3 -B
"""Tests evaluation/text.py and strategy_list.py."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2]))
from evaluation import strategy_list, text  # noqa: E402
from evaluation.failure import BadInput  # noqa: E402


class WordConnection:
    """Has a token for each character, and counts calls."""

    def __init__(self):
        self.num_calls = 0

    def tokenize(self, content):
        self.num_calls += 1
        return [ord(character) for character in content]


class TextTest(unittest.TestCase):

    def test_windows_do_not_overlap_and_are_whole(self):
        for count, wanted in ((0, []), (3, []), (4, [[0, 1, 2, 3]]),
                              (7, [[0, 1, 2, 3]]),
                              (8, [[0, 1, 2, 3], [4, 5, 6, 7]])):
            self.assertEqual(text.windows(list(range(count)), 4), wanted)

    def test_pieces_are_the_text_and_begin_between_words(self):
        content = "one two.  three\n\nfour 5 six seven eight " * 3
        for size in range(1, 50):
            found = list(text.pieces(content, size))
            self.assertEqual("".join(found), content)
            for before, piece in zip(found, found[1:]):
                self.assertTrue(before[-1].isalpha() and piece[0] == " "
                                and piece[1].isalpha(), (before, piece))
                self.assertGreaterEqual(len(before), size)
        self.assertGreater(len(list(text.pieces(content, 1))), 10)
        self.assertEqual(list(text.pieces("水" * 99, 9)), ["水" * 99])
        self.assertEqual(list(text.pieces("что ты 水，水。 水", 1)),
                         ["что", " ты", " 水", "，水", "。 水"])

    def test_reads_no_further_than_asked(self):
        content = "many words " * 20000
        for max_tokens, num_calls in ((0, 7), (100, 1), (40000, 2)):
            connection = WordConnection()
            ids = text.tokenize(connection, content, max_tokens)
            self.assertEqual(len(ids), max_tokens or len(content))
            self.assertEqual(connection.num_calls, num_calls)

    def test_refuses_files_without_text(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "text"
            for content, message in ((b"", "is empty"), (b" \n", "is empty"),
                                     (b"ab\xff", r"not UTF-8 text \(byte 2\)")):
                path.write_bytes(content)
                with self.assertRaisesRegex(BadInput, message):
                    text.read_text(str(path))
            with self.assertRaisesRegex(BadInput, "Is a directory"):
                text.read_text(folder)
            path.write_text("é\r\n", encoding="utf-8", newline="")
            self.assertEqual(text.read_text(str(path)), "é\r\n")


class StrategyListTest(unittest.TestCase):

    def test_labels_are_optional(self):
        self.assertEqual(
            strategy_list.split(" full; every=2;kv50=leaders=0,4;half;x=full"),
            [("full", "full"), ("every=2", "every=2"),
             ("kv50", "leaders=0,4"), ("half", "half"), ("x", "full")])

    def test_refuses_empty_and_double_items(self):
        for content in ("", "full;", "full;;every=2", "full;full",
                        "x=full;x=every=2"):
            with self.assertRaises(BadInput):
                strategy_list.split(content)


if __name__ == "__main__":
    unittest.main()
