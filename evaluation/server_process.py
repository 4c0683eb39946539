"""A server of one's own, for the time of a measurement."""

import re
import signal
import subprocess
import tempfile

from evaluation.failure import Failure


class ServerProcess:
    """strata_server on a free port of the loopback, from `with` to its end.

    Each has an empty prefix cache, so that no measurement profits from the one
    before.
    """

    def __init__(self, binary, flags):
        self._command = [str(binary), "--grpc_port=0", "--http_port=0", *flags]
        self._process = None
        self._log = None
        self._last_lines = []
        self.address = ""

    def __enter__(self):
        self._log = tempfile.TemporaryFile("w+", errors="replace")
        try:
            # In a session of its own, so that Ctrl-C leaves stopping it to us.
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=self._log, text=True, start_new_session=True)
        except OSError as error:
            raise Failure(f"{self._command[0]}: {error.strerror}") from None
        try:
            for line in self._process.stdout:
                if found := re.match(r"listening grpc=(\S+)", line):
                    self.address = found[1]
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

    def _stop(self):
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait()
        self._process.stdout.close()
        with self._log:
            self._log.seek(0)
            self._last_lines = self._log.readlines()[-20:]
        return status

    def _log_end(self, num_lines):
        return "".join(self._last_lines[-num_lines:]).strip()
