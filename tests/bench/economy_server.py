"""A server of one's own and the load client, as economy.py uses them."""
import json
import os
import re
import signal
import subprocess
import tempfile


class Failure(Exception):
    """What the user is told before the script ends with 1."""


class Server:
    """strata_server on a free port of the loopback, from `with` to its end.

    Each has an empty prefix cache, so no run profits from the one before.
    """

    def __init__(self, binary, flags):
        self._command = [binary, "--grpc_port=0", "--http_port=0", *flags]
        self._process = None
        self._log = None
        self.address = ""

    def __enter__(self):
        self._log = tempfile.TemporaryFile("w+", errors="replace")
        # In a session of its own, so that Ctrl-C leaves stopping it to us.
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._log, text=True,
            start_new_session=True)
        try:
            for line in self._process.stdout:
                if found := re.match(r"listening grpc=(\S+)", line):
                    self.address = found[1]
                    return self
        except BaseException:
            self._stop()
            raise
        self._stop()
        raise Failure(f"the server did not come up; its log ends with\n{self._log_end()}")

    def __exit__(self, kind, *_):
        status = self._stop()
        if status != 0 and kind is None:
            raise Failure(f"the server ended with status {status}; its log ends with\n{self._log_end()}")

    def _stop(self):
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait()

    def _log_end(self):
        self._log.seek(0)
        return "".join(self._log.readlines()[-20:])


def run_load(binary, address, flags):
    """Runs strata_load, whose progress goes to standard error; returns its report."""
    handle, path = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    try:
        status = subprocess.run([binary, f"--address={address}", f"--json={path}", *flags], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, check=False).returncode
        if status != 0:
            raise Failure(f"the load client ended with status {status}")
        with open(path, encoding="utf-8") as report:
            return json.load(report, parse_float=lambda text: round(float(text), 4))
    finally:
        os.unlink(path)
