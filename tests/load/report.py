#!/usr/bin/python3 -B
"""Makes report.md and report.png of FOLDER/report.json, as --report wrote it."""

import json
import pathlib
import sys

import matplotlib

matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

MIB = 1 << 20

# Okabe and Ito's colours, which the colour-blind tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9",
           "#000000")


def table(rows: list[list[str]]) -> list[str]:
    """Markdown; the first row is the head."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return [lines[0], "|---" * len(rows[0]) + "|", *lines[1:], ""]


def cell(text) -> str:
    return str(text).replace("|", "\\|")


def groups(report: dict) -> list[tuple[str, dict]]:
    return [*report["by_strategy"].items(), ("all", report)]


def end_rows(report: dict) -> list[list[str]]:
    rows = [["strategy", "completed", "failed", "cancelled", "expired",
             "calls/s", "tok/s", "KV bytes a call", "of `full`", "cached"]]
    for name, group in groups(report):
        full = group["kv_bytes_full_mean"]
        rows.append([
            f"`{cell(name)}`" if group is not report else name,
            *(str(group[key]) for key in
              ("completed", "failed", "cancelled", "expired")),
            f"{group['request_throughput']:.2f}",
            f"{group['output_throughput']:.1f}",
            f"{group['kv_bytes_mean']:,.0f}",
            f"{100 * group['kv_bytes_mean'] / full:.0f} %" if full else "-",
            f"{100 * group['prefix_hit_rate']:.0f} %"])
    return rows


def latency_rows(report: dict) -> list[list[str]]:
    rows = [["strategy", "what", "mean", "p50", "p90", "p95", "p99"]]
    for name, group in groups(report):
        for key, what in (("ttft", "TTFT"), ("tpot", "TPOT"), ("itl", "ITL"),
                          ("e2el", "E2E"),
                          ("e2el_including_client_queue",
                           "E2E from the intended start")):
            rows.append([
                f"`{cell(name)}`" if group is not report else name, what,
                *(f"{group[f'{of}_{key}_ms']:.1f}"
                  for of in ("mean", "p50", "p90", "p95", "p99"))])
    return rows


def facts(report: dict) -> list[str]:
    lines = [
        f"- Model `{cell(report['model_id'])}`; {report['num_prompts']} calls "
        f"in {report['duration']:.1f} s, at most "
        f"{report['max_concurrent_requests']} at once.",
        f"- Rate {report['request_rate']} calls/s, burstiness "
        f"{report['burstiness']}, concurrency "
        f"{report['max_concurrency'] or 'not capped'}, seed {report['seed']}"
        + (f", trace `{cell(report['trace'])}`." if report["trace"] else "."),
        f"- Resident in the server at most {report['running_peak']}, in the "
        f"mean {report['running_mean']:.1f}; KV peak "
        f"{report['kv_bytes_peak'] / MIB:.1f} of "
        f"{report['kv_pool_bytes'] / MIB:.1f} MiB.",
        f"- {report['switches']} switches in completed calls, "
        f"{report['live_switches']} by Admin, {report['live_switches_late']} "
        f"too late; {report['preemptions']} pre-emptions."]
    if report["cut_prompts"] or report["cut_outputs"]:
        lines.append(f"- Cut to the model's context: {report['cut_prompts']} "
                     f"prompts, {report['cut_outputs']} outputs.")
    if report["goodput"]:
        limits = ", ".join(f"{key} {limit:g} ms"
                           for key, limit in report["goodput"].items())
        lines.append(f"- Goodput ({limits}): "
                     f"{report['request_goodput']:.2f} calls/s.")
    if any(sample["resident_bytes"] for sample in report["samples"]):
        lines.append("- Server memory over the second half: "
                     f"{report['memory_growth_bytes'] / MIB:+.1f} MiB.")
    for code, count in report["errors"].items():
        lines.append(f"- Failed with {code}: {count}.")
    return lines


def markdown(report: dict) -> str:
    verdict = [f"- {cell(line)}" for line in report["violations"]]
    return "\n".join([
        f"# Load test, {report['date']}", "", *facts(report), "",
        *table(end_rows(report)),
        "Latencies of completed calls in ms, defined as `vllm bench serve` "
        "does: TTFT and E2E from the real start of a call, TPOT = (E2E - TTFT) "
        "/ (tokens - 1), ITL between responses.", "",
        *table(latency_rows(report)), "## Invariants", "",
        *(verdict or ["All that were looked at hold."]), "",
        "![latencies, throughput and load](report.png)", ""])


def plot_distribution(axis, report: dict, values, title: str):
    """The share of `values(details, i)` below x, for each strategy."""
    details = report["details"]
    for colour, name in zip(COLOURS * 9, report["by_strategy"]):
        points = sorted(
            1e3 * value for i, strategy in enumerate(details["strategies"])
            if strategy == name and details["outcomes"][i] == "completed"
            for value in values(details, i))
        if points:
            axis.step(points, [100 * (i + 1) / len(points)
                               for i in range(len(points))],
                      where="post", color=colour, label=name)
    axis.set_xlabel("ms")
    axis.set_ylabel("% of them")
    axis.set_xscale("log")
    axis.set_title(title)
    if axis.lines:
        axis.legend(frameon=False)


def plot_load(axis, report: dict):
    samples = report["samples"]
    at = [sample["at_s"] for sample in samples]
    for key, colour in (("running", COLOURS[0]), ("waiting", COLOURS[1])):
        axis.plot(at, [sample[key] for sample in samples], color=colour,
                  label=key)
    axis.set_ylabel("requests")
    tokens = axis.twinx()
    tokens.plot(at, [sample["generated_tokens_per_s"] for sample in samples],
                color=COLOURS[2], linestyle=":", label="tok/s (right)")
    tokens.set_ylim(bottom=0)
    axis.set_xlabel("s")
    axis.set_title("Load")
    lines = axis.lines + tokens.lines
    axis.legend(lines, [line.get_label() for line in lines], frameon=False)


def plot_memory(axis, report: dict):
    samples = report["samples"]
    at = [sample["at_s"] for sample in samples]
    used = [sample["kv_used_bytes"] / MIB for sample in samples]
    cached = [sample["kv_cached_bytes"] / MIB for sample in samples]
    axis.stackplot(at, used, cached, colors=(COLOURS[0], COLOURS[5]),
                   labels=("KV used", "KV of cached prefixes"))
    axis.axhline(report["kv_pool_bytes"] / MIB, color="#888888",
                 linestyle=":", label="KV pool")
    resident = [(sample["at_s"], sample["resident_bytes"] / MIB)
                for sample in samples if sample["resident_bytes"]]
    if resident:
        axis.plot(*zip(*resident), color=COLOURS[1], label="process")
    axis.set_ylim(bottom=0)
    axis.set_xlabel("s")
    axis.set_ylabel("MiB")
    axis.set_title("Memory")
    axis.legend(frameon=False)


def plot(report: dict, path: pathlib.Path):
    matplotlib.rcParams.update({
        "font.size": 9, "axes.spines.top": False, "axes.grid": True,
        "grid.alpha": 0.3})
    figure, axes = pyplot.subplots(2, 2, figsize=(12, 8))
    plot_distribution(axes[0][0], report,
                      lambda details, i: [details["ttfts"][i]
                                          + details["queue_times"][i]],
                      "Time to first token, from the intended start")
    plot_distribution(axes[0][1], report,
                      lambda details, i: details["itls"][i],
                      "Time between responses")
    plot_load(axes[1][0], report)
    plot_memory(axes[1][1], report)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main() -> int:
    if len(sys.argv) != 2:
        print("report.py: takes the folder of a report.json", file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[1])
    try:
        report = json.loads((folder / "report.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        print(f"report.py: {folder}/report.json: {error}", file=sys.stderr)
        return 2
    (folder / "report.md").write_text(markdown(report), "utf-8")
    plot(report, folder / "report.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
