"""How far a long measurement is, on standard error."""

import sys
import threading
import time


class Progress:
    """Counts work done towards a total, which may be an estimate.

    On a terminal one line is rewritten; elsewhere a line is written every
    `SECONDS`.  Any thread may call add().
    """

    SECONDS = 10

    def __init__(self, what, total, stream=None):
        self._what = what
        self._total = total
        self._stream = stream or sys.stderr
        self._done = 0
        self._begin = self._shown = time.monotonic()
        self._lock = threading.Lock()

    def add(self, amount=1):
        with self._lock:
            self._done += amount
            self._show()

    def end(self):
        """Leaves what was shown, in a line of its own."""
        if self._stream.isatty():
            self._stream.write("\r\033[K")
        seconds = time.monotonic() - self._begin
        self._stream.write(f"{self._what}: {seconds:.0f} s\n")
        self._stream.flush()

    def _show(self):
        now = time.monotonic()
        terminal = self._stream.isatty()
        if now - self._shown < (0.2 if terminal else self.SECONDS):
            return
        self._shown = now
        part = min(1.0, self._done / max(1, self._total))
        left = (now - self._begin) * (1 - part) / max(part, 1e-9)
        text = f"{self._what}: {100 * part:.0f} %, about {left:.0f} s to go"
        self._stream.write(f"\r\033[K{text}" if terminal else f"{text}\n")
        self._stream.flush()
