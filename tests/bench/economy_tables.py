"""What economy.py measured, as Markdown tables."""
from evaluation.tables import render


def load_table(runs):
    """TTFT, goodput and what the pool held, by rate and configuration."""
    heads = ["calls/s", "configuration", "TTFT p50 ms", "p99", "goodput/s", "good", "tok/s", "resident", "peak",
             "switches", "preempted", "ended `full`"]
    rows = []
    for run in runs:
        report = run["report"]
        completed = report["completed"]
        rows.append([
            f"{run['rate']:g}", run["configuration"],
            f"{report['p50_ttft_ms']:,.0f}", f"{report['p99_ttft_ms']:,.0f}",
            f"{report['request_goodput']:.2f}", percent(report["request_goodput"], report["request_throughput"]),
            f"{report['output_throughput']:.0f}", f"{report['running_mean']:.1f}", f"{report['running_peak']}",
            f"{report['switches']}", f"{report['preemptions']}",
            percent(report["ended_under"].get("full", 0), completed)])
    return render(heads, rows)


def prefix_table(runs):
    """Hit rates and TTFT by strategy, with the prefix cache and without."""
    heads = ["mix", "strategy", "calls", "hit rate", "TTFT p50 ms", "p99", "bypassed: p50", "p99"]
    rows = []
    for run in runs:
        cached, bypassed = run["cached"], run["bypassed"]
        groups = list(cached["by_strategy"])
        for group in groups:
            rows.append(prefix_row(run["mix"], group, cached["by_strategy"][group], bypassed["by_strategy"][group]))
        if len(groups) > 1:
            rows.append(prefix_row(run["mix"], "all", cached, bypassed))
    return render(heads, rows)


def prefix_row(mix, name, cached, bypassed):
    if not cached["completed"]:
        return [mix, name, "0", *["-"] * 5]
    return [mix, name, f"{cached['completed']}", f"{100 * cached['prefix_hit_rate']:.1f}%",
            f"{cached['p50_ttft_ms']:,.0f}", f"{cached['p99_ttft_ms']:,.0f}",
            f"{bypassed['p50_ttft_ms']:,.0f}", f"{bypassed['p99_ttft_ms']:,.0f}"]


def percent(part, whole):
    return f"{100 * part / whole:.0f}%" if whole else "-"
