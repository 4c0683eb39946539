#!/usr/bin/python3
"""Writes dashboards/*.json, which Grafana reads, from *_dashboard.py.

Run it after a change and commit both; a test compares them.
"""

import json
import pathlib

from fleet_dashboard import fleet
from kv_dashboard import kv
from service_dashboard import service


def files() -> dict[str, str]:
    """The text of each file, by name."""
    made = {"service.json": service(), "kv.json": kv(), "fleet.json": fleet()}
    return {name: json.dumps(content, indent=1) + "\n"
            for name, content in made.items()}


def main() -> None:
    folder = pathlib.Path(__file__).parent / "dashboards"
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
