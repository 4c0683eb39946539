#!/usr/bin/python3 -B
"""Tests how the programs of evaluation/ end."""

import os
import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2]))
from evaluation import command_line  # noqa: E402


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


if __name__ == "__main__":
    unittest.main()
