"""The load client, as economy.py uses it."""
import json
import os
import subprocess
import tempfile

from evaluation.failure import Failure


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
