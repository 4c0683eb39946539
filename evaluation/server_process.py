"""A server of one's own, for the time of a measurement or a test."""

import os
import pathlib
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterable

from evaluation.failure import Failure


class ServerProcess:
    """strata_server on free ports of the loopback, from `with` to its end.

    Each has an empty prefix cache, so that no measurement profits from the one
    before.  `address` (gRPC) and `http_address` are HOST:PORT.
    """

    def __init__(self, binary: str | pathlib.Path, flags: Iterable[object]):
        self._command = [str(binary), "--grpc_port=0", "--http_port=0",
                         *map(str, flags)]
        self._process = None
        self._log = None
        self._whole_log = ""
        self._was_signalled = False
        self.address = ""
        self.http_address = ""

    def __enter__(self):
        self._log = tempfile.TemporaryFile()
        try:
            # In a session of its own, so that Ctrl-C leaves stopping it to us.
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=self._log, text=True, start_new_session=True)
        except OSError as error:
            self._log.close()
            raise Failure(f"{self._command[0]}: {error.strerror}") from None
        try:
            for line in self._process.stdout:
                if found := re.match(r"listening grpc=(\S+) http=(\S+)", line):
                    self.address, self.http_address = found.groups()
                    return self
        except BaseException:
            self._stop()
            raise
        status = self._stop()
        if status in (1, 2):  # it refused, and says why in its last line
            raise Failure(f"the server did not come up: {self._log_end(1)}")
        raise Failure(f"the server did not come up, status {status}; its log "
                      f"ends with\n{self._log_end(20)}")

    def __exit__(self, kind, *_):
        status = self._stop()
        if status != 0 and kind is None:
            raise Failure(f"the server ended with status {status}; its log ends"
                          f" with\n{self._log_end(20)}")

    def log(self) -> str:
        """What it has logged so far."""
        if self._log.closed:
            return self._whole_log
        # Not by seek: the server writes at the position that both share.
        descriptor = self._log.fileno()
        size = os.fstat(descriptor).st_size
        return os.pread(descriptor, size, 0).decode(errors="replace")

    def signal_stop(self):
        """Asks it to drain, and does not wait."""
        if not self._was_signalled:  # a second signal would end it at once
            self._process.send_signal(signal.SIGTERM)
        self._was_signalled = True

    def _stop(self) -> int:
        self.signal_stop()
        status = self._process.wait()
        self._process.stdout.close()
        self._whole_log = self.log()
        self._log.close()
        return status

    def _log_end(self, num_lines: int) -> str:
        return "\n".join(self.log().splitlines()[-num_lines:]).strip()
