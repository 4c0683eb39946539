"""What ./strata bench speed measures: engines that stay loaded and answer."""

import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2]))

from evaluation.failure import Failure  # noqa: E402


class Engine:
    """A process that prints a line of facts, JSON, once it has the model, and
    then answers every line with a figure; from `with` to its end.

    Between two questions it waits without using the processor.
    """

    def __init__(self, name: str, command: Sequence[object]):
        self._name = name
        self._command = [str(part) for part in command]
        self._log = None
        self._process = None
        self.facts = {}

    def __enter__(self):
        self._log = tempfile.TemporaryFile()
        try:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=self._log, text=True)
        except OSError as error:
            self._log.close()
            raise Failure(f"{self._command[0]}: {error.strerror}") from None
        try:
            self.facts = json.loads(self._read())
        except BaseException as error:
            self.__exit__()
            if isinstance(error, ValueError):
                raise Failure(f"{self._name} does not say what it has loaded"
                              ) from None
            raise
        return self

    def __exit__(self, *_):
        self._process.kill()  # it holds nothing that is worth an orderly end
        self._process.communicate()
        self._log.close()

    def ask(self, question: str) -> float:
        try:
            self._process.stdin.write(question + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # _read() says why
        answer = self._read()
        try:
            return float(answer)
        except ValueError:
            raise Failure(f"{self._name} answers {answer.strip()!r} to "
                          f"{question!r}") from None

    def _read(self) -> str:
        if line := self._process.stdout.readline():
            return line
        status = self._process.wait()
        self._log.seek(0)
        log = self._log.read().decode(errors="replace").strip()
        raise Failure(f"{self._name} ended with status {status}: "
                      f"{log.splitlines()[-1] if log else 'it says nothing'}")
