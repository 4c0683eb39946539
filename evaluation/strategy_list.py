"""Lists of strategies on the command line: "full;every=2;kv50=leaders=0,2"."""

import re

from evaluation.connection import Connection, Strategy
from evaluation.failure import BadInput

_NAMED = re.compile(
    r"([a-z][a-z0-9_-]*)=((?:full|(?:every|keep|prefix|leaders|sources)=).*)")


def split(text: str) -> list[tuple[str, str]]:
    """Label and spec of each item; `LABEL=SPEC` gives a label of one's own."""
    items = [item.strip() for item in text.split(";")]
    if not all(items):
        raise BadInput(f"--strategies={text}: an item is empty; wanted is "
                       "SPEC or NAME=SPEC, with semicolons between")
    pairs = []
    for item in items:
        named = _NAMED.fullmatch(item)
        pairs.append((named[1], named[2]) if named else (item, item))
    if len({label for label, _ in pairs}) < len(pairs):
        raise BadInput(f"--strategies={text}: an item stands twice")
    return pairs


def resolve(connection: Connection, text: str) -> list[Strategy]:
    return [connection.strategy(label, spec) for label, spec in split(text)]
