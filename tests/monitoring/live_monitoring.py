"""A real Prometheus with our configuration, on a free port of the loopback."""

import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

PROMETHEUS = "/usr/bin/prometheus"  # of Debian's package prometheus
RULES = pathlib.Path("monitoring/prometheus")
PATIENCE_S = 60  # a machine may be busy; nothing is this slow


def wait_until(condition: Callable[[], Any]) -> Any:
    """Its first value that is true, or the last one."""
    end = time.monotonic() + PATIENCE_S
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.2)
    return value


class Prometheus:
    """Prometheus with our configuration, which scrapes `target`.

    Alone the target and the intervals differ from what is shipped: a second.
    """

    def __init__(self, folder: pathlib.Path, target: str):
        shutil.copytree(RULES, folder / "config")
        for path in (folder / "config").glob("*.yml"):
            path.chmod(0o600)
            path.write_text(re.sub(r"(interval: )\w+", r"\g<1>1s",
                                   path.read_text()))
        targets = folder / "config/targets/local.yml"
        targets.chmod(0o600)
        targets.write_text(targets.read_text().replace("localhost:8002",
                                                       target))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._address = "127.0.0.1:{}".format(free.getsockname()[1])
        self._log = folder / "prometheus.log"
        with self._log.open("w") as output:
            self._process = subprocess.Popen(
                [PROMETHEUS, f"--config.file={folder}/config/prometheus.yml",
                 f"--storage.tsdb.path={folder}/data",
                 f"--web.listen-address={self._address}"],
                stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT)

    def __enter__(self):
        wait_until(self._is_ready)
        return self

    def __exit__(self, *_):
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()

    def _is_ready(self) -> bool:
        log = self._log.read_text(errors="replace")
        if self._process.poll() is not None:
            raise RuntimeError("it ended:\n" + log)
        return "Server is ready to receive web requests" in log

    def get(self, path: str, **parameters: str) -> Any:
        """The `data` of an answer of Prometheus' API."""
        query = urllib.parse.urlencode(parameters)
        url = f"http://{self._address}/api/v1/{path}?{query}"
        try:
            with urllib.request.urlopen(url) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(error.read().decode()) from error

    def query(self, expr: str) -> list[dict[str, Any]]:
        """The vector that an expression gives now."""
        return self.get("query", query=expr)["result"]

    def rules(self) -> list[dict[str, Any]]:
        """Recording and alert rules, as they were last evaluated."""
        return [rule for group in self.get("rules")["groups"]
                for rule in group["rules"]]
