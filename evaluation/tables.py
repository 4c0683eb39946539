"""Markdown tables whose columns are aligned."""


def render(heads, rows, num_left=2):
    """Cells are text; the first `num_left` columns stand left, others right."""
    widths = [max(len(row[c]) for row in [heads, *rows])
              for c in range(len(heads))]

    def line(cells):
        aligned = [cell.ljust(width) if c < num_left else cell.rjust(width)
                   for c, (cell, width) in enumerate(zip(cells, widths))]
        return "| " + " | ".join(aligned) + " |"

    rule = ["-" * width if c < num_left else "-" * (width - 1) + ":"
            for c, width in enumerate(widths)]
    return "\n".join([line(heads), "| " + " | ".join(rule) + " |",
                      *map(line, rows)])
