"""Documents and windows."""
import json
import pathlib
import tempfile
import unittest

from training.byte_tokenizer import byte_tokenizer
from training.data import DataError, TokenWindows, read_documents


class ReadDocumentsTest(unittest.TestCase):

    def read(self, name, content):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / name
            path.write_bytes(content)
            return read_documents(str(path))

    def test_json_lines(self):
        lines = [{"text": "one"}, {"context": "c", "question": "q",
                                   "answer": "a", "more": 1}]
        content = "\n".join(map(json.dumps, lines)) + "\n\n"
        self.assertEqual(self.read("x.jsonl", content.encode()),
                         ["one", "c\n\nQuestion: q\nAnswer: a"])

    def test_a_line_separator_within_a_text_ends_no_line(self):
        line = json.dumps({"text": "a\u2028b\x85c"}, ensure_ascii=False)
        self.assertEqual(self.read("x.jsonl", line.encode()),
                         ["a\u2028b\x85c"])

    def test_plain_text(self):
        self.assertEqual(self.read("x.txt", b"one\n\nstill one\n\n\n\ntwo\n"),
                         ["one\n\nstill one", "two\n"])

    def test_a_byte_order_mark_is_no_text(self):
        for name, content in (("x.txt", b"one"),
                              ("x.jsonl", b'{"text": "one"}')):
            with self.subTest(name):
                self.assertEqual(self.read(name, b"\xef\xbb\xbf" + content),
                                 ["one"])

    def test_what_is_not_utf8_is_said(self):
        for content in (b"caf\xe9 x", "\ufeffone".encode("utf-16-le")):
            with self.assertRaisesRegex(DataError, r"x.txt: not UTF-8 text "
                                        r"\(byte (0|3)\)"):
                self.read("x.txt", content)

    def test_mistakes(self):
        for name, content in (("x.txt", b""), ("x.txt", b"\n\n\n \n"),
                              ("x.jsonl", b""), ("x.jsonl", b"{}"),
                              ("x.jsonl", b"[1]"), ("x.jsonl", b'{"text": 1}'),
                              ("x.jsonl", b'{"question": "q"}'),
                              ("x.txt", b"\xff\xfe")):
            with self.subTest(content=content), self.assertRaises(DataError):
                self.read(name, content)


class TokenWindowsTest(unittest.TestCase):

    def windows(self, seed=1, length=4):
        return TokenWindows(["abcdefg", "hij", "klmno"],
                            byte_tokenizer(), length, seed)

    def text(self, windows, number):
        return byte_tokenizer().decode(windows.window(number))

    def test_documents_end_with_the_end_token(self):
        windows = self.windows()
        self.assertEqual(windows.num_tokens, 18)
        self.assertEqual(windows.num_windows, 4)
        texts = {self.text(windows, number) for number in range(4)}
        self.assertEqual(texts, {"abcd", "efg<eos>", "hij<eos>", "klmn"})

    def test_a_long_document_is_tokenised_in_parts(self):
        text = "some words of a text. " * 5000
        lengths = []
        tokenizer = byte_tokenizer()

        def spy(text, **flags):
            lengths.append(len(text))
            return tokenizer(text, **flags)

        spy.eos_token_id = tokenizer.eos_token_id
        windows = TokenWindows([text], spy, 110001, 1)
        self.assertEqual(tokenizer.decode(windows.window(0)), text + "<eos>")
        self.assertLess(max(lengths), 40000)

    def test_each_epoch_has_all_windows_in_an_order_of_its_own(self):
        windows = self.windows(length=1)
        epochs = [[self.text(windows, 18 * epoch + n) for n in range(18)]
                  for epoch in range(3)]
        self.assertEqual(len(set(map(tuple, epochs))), 3)
        self.assertEqual(len(set(tuple(sorted(e)) for e in epochs)), 1)

    def test_a_window_depends_on_seed_and_number_only(self):
        one, other = self.windows(), self.windows()
        late = self.text(other, 9)
        self.assertEqual([self.text(one, n) for n in range(10)][9], late)

    def test_too_little_text(self):
        with self.assertRaises(DataError):
            self.windows(length=19)


if __name__ == "__main__":
    unittest.main()
