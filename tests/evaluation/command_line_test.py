#!/usr/bin/python3 -B
"""Tests how the programs of evaluation/ end."""

import contextlib
import io
import os
import pathlib
import signal
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2]))
from evaluation import command_line, evaluate  # noqa: E402
from evaluation.failure import BadInput  # noqa: E402


class RunTest(unittest.TestCase):

    def setUp(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def end(self, first, second):
        """Whether what is to be closed was, despite a second signal."""
        closed = []

        def main():
            try:
                os.kill(os.getpid(), first)
            finally:
                os.kill(os.getpid(), second)
                closed.append(True)

        try:
            status = command_line.run("eval", main)
        except SystemExit as ended:
            status = ended.code
        self.assertEqual(closed, [True])
        return status

    def test_a_second_signal_does_not_break_off_the_end(self):
        self.assertEqual(self.end(signal.SIGINT, signal.SIGINT), 130)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.assertEqual(self.end(signal.SIGTERM, signal.SIGINT), 143)

    def test_who_ignores_ctrl_c_goes_on(self):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.assertEqual(command_line.run(
            "eval", lambda: os.kill(os.getpid(), signal.SIGINT)), 0)


class CheckTest(unittest.TestCase):

    def check(self, *flags):
        return evaluate.parse_arguments(["--text=any.txt", *flags])

    def test_paths_that_are_not_there(self):
        for flags in (["--model=/none"], ["--model=/", "--adapter=/none"]):
            with self.assertRaisesRegex(BadInput, "=/none: no such file"):
                self.check(*flags)

    def test_files_that_cannot_be_written(self):
        for path, words in (("/none/x.json", "folder is not there"),
                            ("/tmp", "is a folder")):
            with self.assertRaisesRegex(BadInput, words):
                self.check("--model=/", f"--json={path}")
        with mock.patch("os.access", return_value=False), \
                self.assertRaisesRegex(BadInput, "cannot be written"):
            self.check("--model=/", "--json=/tmp/none.json")

    def test_what_the_system_says_has_no_number(self):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            status = command_line.run("eval", lambda: open("/none"))
        self.assertEqual((status, errors.getvalue()), (
            1, "strata eval: /none: No such file or directory\n"))

    def test_the_demo_model_is_added_after_the_check(self):
        self.check("--check_only")
        with self.assertRaisesRegex(BadInput, "--target or --model"):
            self.check()


if __name__ == "__main__":
    unittest.main()
