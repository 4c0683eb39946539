"""What the benchmarks of this folder do with their results."""

import datetime
import pathlib
import sys

ROOT = pathlib.Path(__file__).absolute().parents[2]
sys.path.insert(0, str(ROOT))

from evaluation import command_line  # noqa: E402

QUIET = 0.05  # the share of the cores that others may use


def say(text: str):
    print(text, file=sys.stderr, flush=True)


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(
        timespec="seconds")


def warn_of_others(share: float) -> list[str]:
    """Lines of Markdown; `share`: of the cores, that others used at most."""
    if share <= QUIET:
        return []
    return ["", f"Not to be relied on: others used up to {share:.0%} of the "
            "cores meanwhile."]


def write(out: pathlib.Path, result: dict, text: str):
    """OUT.json and OUT.md, which is printed too."""
    out.parent.mkdir(exist_ok=True)
    # Names may have dots: with_suffix() would cut them.
    command_line.write_json(f"{out}.json", result)
    pathlib.Path(f"{out}.md").write_text(text, encoding="utf-8")
    print(text, end="")
    say(f"wrote {out}.md and {out}.json")
