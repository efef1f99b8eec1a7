#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what the benchmarks measured: time over size, both logarithmic, one line per contestant.

usage: draw.py FOLDER [--to docs]

Reads launch.json, local.json and scale.json of FOLDER as far as they are there, and writes a picture
of the same name for each. Points are medians of all runs.
"""
import argparse
import html
import json
import math
import pathlib
import statistics

WIDTH, HEIGHT = 760, 430
LEFT, RIGHT, TOP, BOTTOM = 66, 178, 66, 64
# The product, the floor it stands on, and the others in the order in which they come.
OURS, FLOOR, OTHERS = "ours", "floor", ["c0", "c1", "c2", "c3", "c4"]

STYLE = """
  svg { font: 12px system-ui, -apple-system, 'Segoe UI', sans-serif }
  .paper { fill: #ffffff; stroke: #d8dee4 } .ink { fill: #1f2328 } .soft { fill: #656d76 }
  .title { font-size: 16px; font-weight: 600 } .name { font-weight: 500 }
  .grid { stroke: #eaeef2 } .axis { stroke: #afb8c1 }
  path { fill: none; stroke-width: 1.7; stroke-linejoin: round; stroke-linecap: round }
  circle { stroke: none }
  .ours { stroke: #0969da; fill: #0969da } path.ours { stroke-width: 3.2; fill: none }
  .floor { stroke: #656d76; fill: #656d76 } path.floor { stroke-dasharray: 2 5; fill: none }
  .c0 { stroke: #bf3989; fill: #bf3989 } .c1 { stroke: #bc4c00; fill: #bc4c00 } .c2 { stroke: #9a6700; fill: #9a6700 }
  .c3 { stroke: #8250df; fill: #8250df } .c4 { stroke: #1a7f37; fill: #1a7f37 }
  text.ours, text.floor, text.c0, text.c1, text.c2, text.c3, text.c4 { stroke: none }
  path.c0, path.c1, path.c2, path.c3, path.c4 { fill: none }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117; stroke: #30363d } .ink { fill: #e6edf3 } .soft { fill: #8d96a0 }
    .grid { stroke: #21262d } .axis { stroke: #484f58 }
    .ours { stroke: #58a6ff; fill: #58a6ff } .floor { stroke: #8d96a0; fill: #8d96a0 }
    .c0 { stroke: #f778ba; fill: #f778ba } .c1 { stroke: #ffa657; fill: #ffa657 }
    .c2 { stroke: #d29922; fill: #d29922 } .c3 { stroke: #bc8cff; fill: #bc8cff } .c4 { stroke: #56d364; fill: #56d364 }
  }
"""


def duration(ms):
    if ms < 9.95:
        return f"{ms:.1f} ms"
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.3g} s"


class Axis:
    """Values on a logarithmic scale, from one end of the picture to the other."""

    def __init__(self, values, begin, end):
        self.low, self.high = math.log10(min(values)), math.log10(max(values))
        self.begin, self.end = begin, end

    def __call__(self, value):
        span = (self.high - self.low) or 1
        return self.begin + (self.end - self.begin) * (math.log10(value) - self.low) / span


def spread(wanted, gap, low, high):
    """Places near the wanted ones, in their order, inside, and at least a gap apart."""
    order, placed = sorted(range(len(wanted)), key=lambda i: wanted[i]), list(wanted)
    for i in order:
        placed[i] = max(placed[i], low)
        low = placed[i] + gap
    for i in reversed(order):
        placed[i] = min(placed[i], high)
        high = placed[i] - gap
    return placed


def text(x, y, words, classes, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{classes}" text-anchor="{anchor}">{html.escape(words)}</text>'


def grid(x_axis, y_axis, sizes, x_name):
    parts = []
    first, last = math.floor(y_axis.low), math.ceil(y_axis.high)
    for power in range(first, last + 1):
        for factor in (1, 2, 5):
            value = factor * 10 ** power
            if not y_axis.low - 1e-9 <= math.log10(value) <= y_axis.high + 1e-9:
                continue
            y = y_axis(value)
            parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" style="stroke-width:1"/>')
            parts.append(text(LEFT - 8, y + 4, duration(value).replace(".0 ", " "), "soft", "end"))
    bottom = HEIGHT - BOTTOM
    for size in sizes:
        x = x_axis(size)
        parts.append(f'<path class="axis" d="M{x:.1f} {bottom}v5" style="stroke-width:1"/>')
        parts.append(text(x, bottom + 19, f"{size:,}", "soft", "middle"))
    parts.append(f'<path class="axis" d="M{LEFT} {bottom}H{WIDTH - RIGHT}" style="stroke-width:1"/>')
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, bottom + 38, x_name, "soft", "middle"))
    return parts


def classes_of(names, ours, floor):
    others = iter(OTHERS * 3)
    return {name: OURS if name == ours else FLOOR if name == floor else next(others) for name in names}


def line(points, kind, x_axis, y_axis):
    places = [(x_axis(x), y_axis(y)) for x, y in points]
    parts = [f'<path class="{kind}" d="M' + "L".join(f"{x:.1f} {y:.1f}" for x, y in places) + '"/>']
    if kind != FLOOR:
        radius = 3.6 if kind == OURS else 2.4
        parts += [f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>' for x, y in places]
    return parts


def labels(series, kinds, x_axis, y_axis, largest):
    """Behind the last point of each line; those that go to the end share a column."""
    column = [name for name in series if series[name][-1][0] == largest]
    places = spread([y_axis(series[name][-1][1]) for name in column], 16, TOP + 4, HEIGHT - BOTTOM - 2)
    at = dict(zip(column, places))
    for name in series:
        size, last = series[name][-1]
        y = at.get(name, y_axis(last))
        yield text(x_axis(size) + 10, y + 4, f"{name} {duration(last)}", f"name {kinds[name]}")


def picture(title, note, x_name, series, ours, floor):
    """series: {name: [(size, ms), ...]}; an SVG."""
    sizes = sorted({x for points in series.values() for x, _ in points})
    values = [y for points in series.values() for _, y in points]
    x_axis = Axis(sizes, LEFT + 14, WIDTH - RIGHT - 8)
    y_axis = Axis([min(values) / 1.25, max(values) * 1.15], HEIGHT - BOTTOM, TOP)
    kinds = classes_of(series, ours, floor)
    parts = grid(x_axis, y_axis, sizes, x_name)
    for name in sorted(series, key=lambda n: (kinds[n] == OURS, kinds[n] != FLOOR)):
        parts += line(series[name], kinds[name], x_axis, y_axis)
    parts += labels(series, kinds, x_axis, y_axis, sizes[-1])
    return "\n".join([
        "<!-- SPDX-License-Identifier: Apache-2.0 -->",
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{html.escape(title)}</title>", f"<style>{STYLE}</style>",
        f'<rect class="paper" x=".5" y=".5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8"/>',
        text(22, 31, title, "ink title"), text(22, 49, note, "soft"), *parts, "</svg>", ""])


# --- what was measured ------------------------------------------------------------------------------


def medians(launches, size):
    series = {}
    for launch in launches:
        for name, runs in launch["runs"].items():
            series.setdefault(name, []).append((launch[size], statistics.median(r["wall"] for r in runs)))
    return {name: sorted(points) for name, points in series.items()}


def how(figures, tool):
    launches = figures["launches"]
    turns = max(len(runs) for launch in launches for runs in launch["runs"].values())
    load = statistics.mean(launch["load"] for launch in launches)
    return (f"wall time, medians of {turns} runs on one machine of {figures['cores']} cores"
            f" (load {load:.0f}) that plays all nodes; tests/bench/{tool}")


def draw_launch(figures):
    stock = figures["launches"][0].get("kex") == "stock"
    return picture("Launching `true` on N nodes over ssh" + (", key exchange as installed" if stock else ""),
                   how(figures, "launch"), "nodes", medians(figures["launches"], "nodes"), "hnlaunch", "libssh probe")


def draw_local(figures):
    return picture("Starting and ending N processes on one machine",
                   how(figures, "local").replace(" that plays all nodes", ""), "processes",
                   medians(figures["launches"], "ranks"), "hnlaunch", "posix_spawn")


def draw_scale(figures):
    rows = figures["nodes"]
    series = {"hnlaunch's head": [(r["nodes"], r["head_ms"]) for r in rows],
              "bare loop": [(r["nodes"], r["floor_ms"]) for r in rows]}
    note = "CPU time of the head, 8 ranks on each simulated node; the loop moves the same bytes; tests/bench/scale"
    return picture("The head's work for a job on N nodes", note, "nodes", series, "hnlaunch's head", "bare loop")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--to", type=pathlib.Path, default=pathlib.Path("docs"))
    a = p.parse_args()
    for name, draw in {"launch": draw_launch, "local": draw_local, "scale": draw_scale}.items():
        source = a.folder / f"{name}.json"
        if source.exists():
            (a.to / f"{name}.svg").write_text(draw(json.loads(source.read_text())))
            print(f"{a.to / name}.svg")


if __name__ == "__main__":
    main()
