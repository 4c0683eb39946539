"""What speed.py measured, as Markdown."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2]))

from evaluation.tables import render  # noqa: E402
from results import warn_of_others  # noqa: E402

PEER = "llama.cpp"


def describe(work: str) -> str:
    """decode_16x256: "decode, 16 streams, context 256"."""
    if found := re.fullmatch(r"decode_(\d+)x(\d+)", work):
        streams, context = found.groups()
        plural = "" if streams == "1" else "s"
        return f"decode, {streams} stream{plural}, context {context}"
    return "prefill " + work.removeprefix("prefill_")


def read_share(facts: dict, work: str, rate: float, gigabytes: float
               ) -> float | None:
    """Of the machine's read bandwidth what decoding one stream uses: each
    token reads all weights and, in every layer, the context's keys and values.
    None for other works, whose limit is not that."""
    found = re.fullmatch(r"decode_1x(\d+)", work)
    if not found:
        return None
    bytes_a_token = (facts["weight_bytes"] + int(found[1]) *
                     facts["kv_read_bytes_per_token"])
    return bytes_a_token * rate / (gigabytes * 1e9)


def table(result: dict) -> str:
    """Best rates of all runs; ratios are the first strategy's to the peer's."""
    strategies, has_peer = result["strategies"], bool(result["peer"])
    heads = ["format", "work", *(f"`{name}`" for name in strategies)]
    heads += [PEER, "ratio"] if has_peer else []
    heads.append("of read")
    rows = []
    for name, measured in result["formats"].items():
        for work, rates in measured["works"].items():
            best = {column: max(runs) for column, runs in rates.items()}
            row = [name.upper(), describe(work)]
            row += [f"{best[strategy]:,.0f}" for strategy in strategies]
            if has_peer:
                row += [f"{best[PEER]:,.0f}",
                        f"{best[strategies[0]] / best[PEER]:.2f}x"]
            share = read_share(measured["facts"], work, best[strategies[0]],
                               result["machine"]["read_gb_per_s"])
            rows.append([*row, f"{share:.0%}" if share is not None else ""])
    return render(heads, rows)


def document(result: dict) -> str:
    machine, first = result["machine"], result["strategies"][0]
    against = (f"; beside it {result['peer']}, the two in turn"
               if result["peer"] else "")
    runs = "1 run" if result["reps"] == 1 else f"{result['reps']} runs"
    lines = [
        f"{result['model']} on {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['threads']} threads, which read "
        f"{machine['read_gb_per_s']:.1f} GB/s in the same run; "
        f"{result['date']}.", "",
        f"Tokens per second of all streams together, the best of {runs}"
        f"{against}.  Each format is a file that `./strata requantize` wrote, "
        "the same for all columns.",
        f"{'ratio: `' + first + '` to it; ' if result['peer'] else ''}"
        f"of read: the share of the read bandwidth that `{first}` uses.",
        "", table(result)]
    most = max(measured["cpu_share_of_others"]
               for measured in result["formats"].values())
    if result["quick"]:
        lines += ["", "A quick run, to see that it works: the figures mean "
                  "nothing."]
    lines += warn_of_others(most)
    return "\n".join(lines) + "\n"
