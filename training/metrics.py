"""OUT/metrics.jsonl: a line for each step and each held-out measurement."""

import json
import os


class Metrics:
    """Appends lines; `is_writer` False: does nothing (another process does)."""

    def __init__(self, folder: str, is_writer: bool):
        self._path = os.path.join(folder, "metrics.jsonl")
        self._is_writer = is_writer

    def begin(self, first: int):
        """Keeps what an earlier run wrote up to step `first`, which a resumed
        one goes on from; 0: nothing."""
        if not self._is_writer:
            return
        kept = []
        if first > 0 and os.path.exists(self._path):
            with open(self._path, encoding="utf-8") as file:
                kept = [line for line in file if _step_of(line) <= first]
        with open(self._path, "w", encoding="utf-8") as file:
            file.writelines(kept)

    def add(self, figures: dict):
        if self._is_writer:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(json.dumps(figures) + "\n")


def _step_of(line):
    try:
        return json.loads(line)["step"]
    except ValueError:  # the end of an interrupted write
        return float("inf")
