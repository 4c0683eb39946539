"""What was measured, as PNG files."""

import matplotlib

matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

# Okabe and Ito's colours, which the colour-blind tell apart.
BLUE, RED, GREY = "#0072B2", "#D55E00", "#888888"


def _figure(num_axes: int):
    matplotlib.rcParams.update({
        "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
        "axes.grid": True, "grid.alpha": 0.3,
        "text.parse_math": False})  # a model's name may hold dollar signs
    return pyplot.subplots(1, num_axes, figsize=(6 * num_axes, 4.2),
                           squeeze=False)


def _save(figure, path: str):
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def plot_evaluation(result: dict, path: str):
    """Loss and F1 over KV bytes per token, as far as they were measured."""
    rows = sorted(result["strategies"],
                  key=lambda row: row["kv_bytes_per_token"])
    panels = [(part, key, title) for part, key, title in (
        ("text", "loss", "Loss, nats per token"), ("qa", "f1", "F1"),
        ("qa", "loss", "Loss of the answers, nats per token"))
              if part in rows[0] and rows[0][part][key] is not None]
    figure, axes = _figure(len(panels))
    kib = [row["kv_bytes_per_token"] / 1024 for row in rows]
    for axis, (part, key, title) in zip(axes[0], panels):
        values = [row[part][key] for row in rows]
        axis.plot(kib, values, color=BLUE, marker="o")
        for x, y, row in zip(kib, values, rows):
            label = row["label"]
            axis.annotate(label if len(label) < 20 else label[:17] + "...",
                          (x, y), textcoords="offset points", xytext=(4, 5))
        axis.set_title(title)
        axis.set_xlabel("KiB of KV cache per token")
        axis.set_xlim(left=0)
        if key == "f1":
            axis.set_ylim(bottom=0)
            # Whoever says nothing is right where there is no answer.
            if rows[0]["qa"]["f1_answerable"] is not None:
                axis.plot(kib, [row["qa"]["f1_answerable"] for row in rows],
                          color=GREY, marker="o", linestyle=":",
                          label="answerable questions")
                axis.legend(frameon=False)
    figure.suptitle(result["model"]["name"])
    _save(figure, path)


def plot_frontier(result: dict, path: str):
    """Held-out loss over the part of the KV cache: found sets and every=N."""
    figure, axes = _figure(1)
    axis = axes[0][0]
    for key, label, colour, marker in (
            ("every", "every=N", RED, "s"), ("frontier", "found", BLUE, "o")):
        points = sorted(result[key], key=lambda point: point["kv"])
        axis.plot([100 * point["kv"] for point in points],
                  [point["heldout_loss"] for point in points],
                  color=colour, marker=marker, label=label)
    axis.axhline(result["full_heldout_loss"], color=GREY, linestyle=":",
                 label="full")
    axis.set_xlabel("KV cache, % of full")
    axis.set_ylabel("loss on held-out text, nats per token")
    axis.set_title(f"{result['model']['name']}: which layers keep a cache")
    axis.legend(frameon=False)
    _save(figure, path)
