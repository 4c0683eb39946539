#!/usr/bin/python3 -B
"""Prints the diagram of docs/architecture.md, docs/architecture.svg.

All text stands in filled boxes, and arrows are grey, so that it can be read on
white and on black.
"""

from xml.sax.saxutils import escape

WIDTH, HEIGHT = 960, 700
ARROW = "#7d8590"
# Of each lane: the fill of the lane, of its boxes, and the border.
GRPC = ("#dbeafe", "#ffffff", "#3b6fb6")
ENGINE = ("#dcf3e0", "#ffffff", "#2f7d45")
CLIENT = ("", "#eaeef2", "#57606a")
DEVICE = ("#fde8d3", "#ffffff", "#b5651d")

_parts: list[str] = []


def lane(y: int, height: int, colours: tuple[str, str, str], title_x: int,
         title: str):
    _parts.append(
        f'<rect x="8" y="{y}" width="{WIDTH - 16}" height="{height}" rx="10" '
        f'fill="{colours[0]}" stroke="{colours[2]}"/>')
    _parts.append(f'<text x="{title_x}" y="{y + 20}" class="lane" '
                  f'style="fill:{colours[2]}">{escape(title)}</text>')


def box(x: int, y: int, width: int, height: int,
        colours: tuple[str, str, str], title: str, *lines: str):
    _parts.append(
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" '
        f'fill="{colours[1]}" stroke="{colours[2]}"/>')
    middle = x + width / 2
    top = y + height / 2 - 8 * len(lines) + 5
    _parts.append(f'<text x="{middle:g}" y="{top:g}" class="title">'
                  f'{escape(title)}</text>')
    for number, line in enumerate(lines, 1):
        _parts.append(f'<text x="{middle:g}" y="{top + 16 * number:g}">'
                      f'{escape(line)}</text>')


def arrow(*points: tuple[int, int], both: bool = False):
    path = " ".join(f"{x},{y}" for x, y in points)
    start = ' marker-start="url(#head)"' if both else ""
    _parts.append(f'<polyline points="{path}" fill="none" stroke="{ARROW}" '
                  f'stroke-width="2"{start} marker-end="url(#head)"/>')


def label(x: int, y: int, text: str):
    width = 7.2 * len(text) + 14
    _parts.append(
        f'<rect x="{x - width / 2:g}" y="{y - 10}" width="{width:g}" '
        f'height="20" rx="10" fill="#ffffff" stroke="{ARROW}"/>')
    _parts.append(f'<text x="{x}" y="{y + 4}">{escape(text)}</text>')


def draw_server():
    box(24, 8, 712, 30, CLIENT, "clients")
    lane(62, 204, GRPC, 290, "gRPC's threads (server/)")
    for number, (face, api) in enumerate((
            ("InferenceService", "strata.v1: Generate, Score"),
            ("KServeService", "inference: KServe, Triton"),
            ("VllmService", "vllm.grpc.engine: llm-d"),
            ("AdminService", "strata.v1.Admin"))):
        box(24, 90 + 43 * number, 200, 39, GRPC, face, api)
    box(270, 118, 226, 84, GRPC, "Admission", "phase, ToRequest, FitRequest;",
        "long texts: TextWorkers")
    box(526, 118, 210, 84, GRPC, "TokenStream", "a TokenSink: one write in",
        "flight, bounded queue")
    box(776, 94, 160, 70, GRPC, "HealthService", "ServingState:",
        "live, ready")
    box(776, 184, 160, 70, GRPC, "HttpServer", "/metrics, /health;",
        "threads of its own")
    arrow((124, 38), (124, 90))
    for y in (110, 153, 196):
        arrow((224, y), (246, y), (246, 160), (270, 160))
    arrow((631, 118), (631, 38))


def draw_engine():
    lane(306, 236, ENGINE, 380, "the engine thread (core/): Engine::Loop")
    box(24, 356, 112, 64, ENGINE, "Inbox", "actions,", "in order")
    box(172, 356, 152, 64, ENGINE, "Scheduler::Plan", "who runs, how much:",
        "BatchPlan")
    box(364, 356, 168, 64, ENGINE, "Transformer::Submit", "the forward pass,",
        "written once")
    box(572, 356, 164, 64, ENGINE, "Scheduler::Commit", "positions are cached;",
        "prefix index")
    box(772, 356, 164, 64, ENGINE, "Delivery::Deliver", "text, stops, usage,",
        "metrics")
    box(24, 456, 148, 72, ENGINE, "KvPool", "page numbers,", "PrefixIndex")
    box(212, 456, 206, 72, ENGINE, "KvMemory", "promises, allocates,",
        "shares, gives back")
    box(492, 456, 244, 72, ENGINE, "Sequence", "tokens, SharingStrategy,",
        "PageTable [slot][block]")
    box(772, 456, 164, 72, ENGINE, "RequestTable", "live requests: by id,",
        "label, deadline")
    for left, right in ((136, 172), (324, 364), (532, 572), (736, 772)):
        arrow((left, 388), (right, 388))
    arrow((268, 420), (268, 456))
    arrow((212, 492), (172, 492), both=True)
    # Round again.
    arrow((820, 356), (820, 340), (110, 340), (110, 356))


def draw_device():
    lane(582, 110, DEVICE, 20, "the device (kernels/): Backend")
    box(24, 612, 280, 66, DEVICE, "page slab",
        "pages of K and V of one leader layer,", "one size for all strategies")
    box(344, 612, 276, 66, DEVICE, "CpuBackend",
        "a ThreadTeam runs the whole step:", "AVX-512, AVX2, portable")
    box(660, 612, 276, 66, DEVICE, "CudaBackend",
        "one graph for every mix", "of strategies")
    arrow((455, 420), (455, 612))
    arrow((344, 645), (304, 645), both=True)


def draw_between():
    arrow((383, 202), (383, 286), (64, 286), (64, 356))
    arrow((150, 258), (150, 276))
    label(220, 286, "Engine::Submit, Cancel, Abort, SwitchStrategy")
    arrow((890, 356), (890, 286), (631, 286), (631, 202))
    label(752, 286, "OnDelta, OnEnd")
    label(455, 562, "Qkv, Attention, Linear, ..., Wait")


def main():
    draw_server()
    draw_engine()
    draw_device()
    draw_between()
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
          f'height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
          'aria-label="The threads of strata_server and what each owns">')
    print("<style>text{font:13px sans-serif;fill:#1f2328;text-anchor:middle}"
          ".title{font-weight:bold}"
          ".lane{font-weight:bold;text-anchor:start}</style>")
    print('<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" '
          'markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
          f'<path d="M0,0 L8,4 L0,8 z" fill="{ARROW}"/></marker></defs>')
    print("\n".join(_parts))
    print("</svg>")


if __name__ == "__main__":
    main()
