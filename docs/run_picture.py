# SPDX-License-Identifier: Apache-2.0
"""Draws docs/run.svg: a real run on four nodes of the lab, in which a rank fails.

    sudo /usr/bin/python3 docs/run_picture.py        needs python3-pyte, PyTorch and a build in build/

The run happens on a terminal of 100 columns, and what stands there at its end becomes the picture."""

import os
import pathlib
import pty
import subprocess
import tempfile
import termios
from xml.sax.saxutils import escape

import pyte

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS, ROWS = 100, 60
CELL, LINE, MARGIN = 7.83, 18, 18  # of a monospaced font of 13 pixels
COMMAND = "hnlaunch -w 'node[001-004]:4' python3 train.py"
PROGRAM = """
import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
print(f"torch {torch.__version__}, {dist.get_world_size()} ranks")
loss = torch.tensor(2.5)
for epoch in range(1, 4):
    time.sleep(2 if epoch == 3 and dist.get_rank() != 5 else 0.3)
    if epoch == 3 and dist.get_rank() == 5:
        raise RuntimeError("loader: shard 12 is empty")
    dist.all_reduce(loss)
    loss *= 0.7 / dist.get_world_size()
    if dist.get_rank() == 0:
        print(f"epoch {epoch}  loss {loss.item():.3f}", flush=True)
"""
STYLE = """
  text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; white-space: pre }
  .paper { fill: #ffffff; stroke: #d8dee4 } .ink { fill: #1f2328 } .soft { fill: #656d76 } .bold { font-weight: 600 }
  .red { fill: #cf222e } .green { fill: #1a7f37 } .yellow { fill: #9a6700 } .blue { fill: #0969da }
  .magenta { fill: #8250df } .cyan { fill: #1b7c83 }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117; stroke: #30363d } .ink { fill: #e6edf3 } .soft { fill: #8d96a0 }
    .red { fill: #ff7b72 } .green { fill: #3fb950 } .yellow { fill: #d29922 } .blue { fill: #58a6ff }
    .magenta { fill: #bc8cff } .cyan { fill: #39c5cf }
  }
"""


def colour(cell):
    name = {"brown": "yellow", "default": "ink"}.get(cell.fg, cell.fg)
    if name.startswith("bright"):
        name = "soft" if name == "brightblack" else name.removeprefix("bright")
    return name + (" bold" if cell.bold else "")


def record(command, folder):
    """The rows of a terminal after the command, each a list of (class, text)."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvp(command[0], command)
    termios.tcsetwinsize(terminal, (ROWS, COLUMNS))
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # the terminal's last user has left
            break
        stream.feed(data)
    os.waitpid(pid, 0)
    rows = []
    for y in range(ROWS):
        row = []
        for x in range(COLUMNS):
            cell = screen.buffer[y][x]
            if row and row[-1][0] == colour(cell):
                row[-1][1] += cell.data
            else:
                row.append([colour(cell), cell.data])
        rows.append(row)
    while rows and not "".join(text for _, text in rows[-1]).strip():
        rows.pop()
    return rows


def draw(rows):
    width, height = MARGIN * 2 + COLUMNS * CELL, MARGIN * 2 + len(rows) * LINE
    parts = [
        "<!-- SPDX-License-Identifier: Apache-2.0 -->",
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img">',
        f"<title>{escape(COMMAND)}</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="paper" x=".5" y=".5" width="{width - 1:.0f}" height="{height - 1}" rx="8"/>',
    ]
    for y, row in enumerate(rows):
        spans, column = [], 0
        for name, text in row:
            if text.strip():
                shown = text.rstrip()
                at = MARGIN + column * CELL
                spans.append(f'<tspan class="{name}" x="{at:.1f}">{escape(shown)}</tspan>')
            column += len(text)
        if spans:
            parts.append(f'<text y="{MARGIN + y * LINE + 13}" xml:space="preserve">{"".join(spans)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main():
    lab = ROOT / "tests/lab/lab"
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"LAB_DIR": folder + "/lab", "HOME": folder, "TERM": "xterm-256color", "OMP_NUM_THREADS": "1"}
        pathlib.Path(folder, "train.py").write_text(PROGRAM)
        pathlib.Path(folder, "hnlaunch").symlink_to(ROOT / "build/hnlaunch")
        subprocess.run([lab, "up", "4"], check=True, stdout=subprocess.DEVNULL)
        try:
            rows = record([str(lab), "run", "sh", "-c", f"PATH={folder}:/usr/bin:/bin; {COMMAND}"], folder)
        finally:
            subprocess.run([lab, "down"], check=True, stdout=subprocess.DEVNULL)
    rows.insert(0, [["soft", "$ "], ["ink bold", COMMAND]])
    (ROOT / "docs/run.svg").write_text(draw(rows))


main()
