"""What economy.py measured, as one SVG file."""
import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402

# Okabe and Ito's colours, which the colour-blind tell apart.
COLOURS = ["#D55E00", "#0072B2", "#009E73", "#E69F00", "#56B4E9", "#CC79A7"]
CACHED, BYPASSED = "#0072B2", "#BBBBBB"


def plot(result, path):
    # The same figures give the same file.
    matplotlib.rcParams.update({"svg.hashsalt": "strata", "font.size": 9, "axes.spines.top": False,
                                "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.3})
    figure, axes = pyplot.subplots(2, 3, figsize=(13, 7.2))
    plot_load(result["load"], [axes[0][0], axes[0][1], axes[0][2], axes[1][0]])
    plot_prefix(result["prefix"], axes[1][1], axes[1][2])
    known = result["facts"]
    axes[0][1].set_title(f"Goodput: calls/s within {known['goodput']} ms")
    figure.suptitle(f"{known['model']}, {known['cores']} cores, KV pool {known['kv_memory']} "
                    f"({known['prefix_kv_memory']} with the shared prompt)")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=6, frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def plot_load(runs, axes):
    ttft, goodput, tokens, resident = axes
    names = list(dict.fromkeys(run["configuration"] for run in runs))
    for name, colour in zip(names, COLOURS):
        points = [run for run in runs if run["configuration"] == name]
        rates = [run["rate"] for run in points]

        def series(key, scale=1):
            return [scale * run["report"][key] for run in points]

        ttft.plot(rates, series("p50_ttft_ms", 1e-3), color=colour, marker="o", label=name)
        ttft.plot(rates, series("p99_ttft_ms", 1e-3), color=colour, marker="o", linestyle=":")
        goodput.plot(rates, series("request_goodput"), color=colour, marker="o")
        tokens.plot(rates, series("output_throughput"), color=colour, marker="o")
        resident.plot(rates, series("running_mean"), color=colour, marker="o")
        resident.plot(rates, series("running_peak"), color=colour, marker="o", linestyle=":")
    ttft.set_yscale("log")
    ttft.yaxis.set_major_formatter("{x:g}")
    ttft.set_title("Time to first token, s (p50; p99 dotted)")
    tokens.set_title("Completed tokens/s")
    resident.set_title("Sequences resident at once (mean; peak dotted)")
    for axis in axes:
        axis.set_xlabel("calls arriving per second")
    for axis in (goodput, tokens, resident):
        axis.set_ylim(bottom=0)


def plot_prefix(runs, hits, ttft):
    labels, rates, cached_ms, bypassed_ms = [], [], [], []
    for run in runs:
        for group, cached in run["cached"]["by_strategy"].items():
            labels.append(f"{run['mix']}: {group}")
            rates.append(100 * cached["prefix_hit_rate"])
            cached_ms.append(cached["p50_ttft_ms"])
            bypassed_ms.append(run["bypassed"]["by_strategy"][group]["p50_ttft_ms"])
    rows = range(len(labels))
    hits.barh(rows, rates, color=CACHED)
    hits.set_xlim(0, 100)
    hits.set_title("Shared prompt: % of prompt tokens cached")
    ttft.barh([row - 0.2 for row in rows], cached_ms, height=0.4, color=CACHED, label="cache")
    ttft.barh([row + 0.2 for row in rows], bypassed_ms, height=0.4, color=BYPASSED, label="bypassed")
    ttft.set_title("Shared prompt: TTFT p50, ms")
    ttft.legend(frameon=False)
    for axis in (hits, ttft):
        axis.set_yticks(list(rows), labels)
        axis.invert_yaxis()
        axis.grid(axis="y", visible=False)
