#!/usr/bin/python3
"""Results of ./dev bench: keeps them in a file, and draws them.

    history.py add --rows QUIET [--busy BUSY] HISTORY     adds a line to HISTORY
    history.py page HISTORY PAGE                          draws all lines of HISTORY

HISTORY has one JSON object a line: when and what was measured on which machine, and its rows. QUIET
and BUSY are what tests/bench/run writes with --rows; BUSY was measured beside a program that
computes.
"""

import argparse
import base64
import datetime
import html
import io
import json
import os
import re
import subprocess
import sys

COLUMNS = ("what", "figure", "peer_figure", "ratio", "budget", "peer")


def read_rows(path):
    """The rows of tests/bench/run, without its headings."""
    rows = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            cells = line.rstrip("\n").split("\t")
            if len(cells) != len(COLUMNS):
                sys.exit(f"{path}:{number}: {len(cells)} cells, expected {len(COLUMNS)}")
            if cells[0] != "what":
                rows.append(dict(zip(COLUMNS, cells)))
    return rows


def first_line(*command):
    """What a command prints first; "" where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.split("\n", maxsplit=1)[0]


def machine():
    """What figures depend on."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = re.findall(r"^model name\s*:\s*(.*)$", file.read(), re.MULTILINE)
    return {
        "cpu": models[0] if models else os.uname().machine,
        "processors": len(os.sched_getaffinity(0)),
        "kernel": os.uname().release,
        "compiler": first_line("c++", "--version"),
    }


def add(arguments):
    """Adds a result to the history."""
    rows = read_rows(arguments.rows)
    if not rows:
        sys.exit(f"{arguments.rows}: no rows")
    if arguments.busy:
        busy = {row["what"]: row for row in read_rows(arguments.busy)}
        for row in rows:
            if row["what"] in busy:
                row["busy_figure"] = busy[row["what"]]["figure"]
                row["busy_ratio"] = busy[row["what"]]["ratio"]
    changed = first_line("git", "status", "--porcelain", "--untracked-files=no")
    entry = {
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": first_line("git", "rev-parse", "--short=8", "HEAD") + ("+" if changed else ""),
        "machine": machine(),
        "rows": rows,
    }
    with open(arguments.history, "a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def read_history(path):
    """The entries of a history."""
    entries = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                entry = json.loads(line)
                entries.append({key: entry[key] for key in ("time", "commit", "machine", "rows")})
            except (ValueError, KeyError, TypeError) as error:
                sys.exit(f"{path}:{number}: not a result of ./dev bench --json: {error!r}")
    return entries


def number(cell):
    """The number that a cell begins with, None where it has none; "0.25 ms" is 0.25."""
    found = re.match(r"-?[0-9.]+(?=\s|$)", cell or "")
    return float(found.group()) if found else None


def limit(budget, unit):
    """The number of a budget in that unit: 20 of ">= 20 x ns-3" if it is "x". Else None."""
    found = re.fullmatch(r"[<>]=? ([0-9.]+) ?(\S*).*", budget)
    return float(found.group(1)) if found and found.group(2) == unit else None


def places(entries):
    """Figures and ratios of each row, by its name in the order in which rows came first."""
    found = {}
    for place, entry in enumerate(entries):
        for row in entry["rows"]:
            found.setdefault(row["what"], []).append((place, row))
    return found


def draw(figure, name, seen, entries):
    """One plot: the ratio to the peer where there is one, else the figure itself."""
    by_ratio = any(number(row["ratio"]) is not None for _, row in seen)
    key = "ratio" if by_ratio else "figure"
    unit = " ".join(seen[-1][1]["figure"].split()[1:])
    axes = figure.subplots()
    machines = sorted({json.dumps(entry["machine"], sort_keys=True) for entry in entries})
    for color, each in enumerate(machines):
        for cell, marker, fill in ((key, "o", "full"), (f"busy_{key}", "o", "none")):
            points = [
                (place, number(row.get(cell)))
                for place, row in seen
                if json.dumps(entries[place]["machine"], sort_keys=True) == each
                and number(row.get(cell)) is not None
            ]
            if points:
                axes.plot(*zip(*points), marker=marker, fillstyle=fill, linestyle="-",
                          linewidth=0.8, color=f"C{color}")
    budget = limit(seen[-1][1]["budget"], "x" if by_ratio else unit)
    if budget is not None:
        axes.axhline(budget, color="0.6", linestyle="--", linewidth=0.8)
    axes.set_title(name, fontsize=9)
    axes.set_ylabel(f"x {seen[-1][1]['peer']}" if by_ratio else unit, fontsize=8)
    axes.set_ylim(0, 1.1 * max(axes.get_ylim()[1], 0))
    axes.set_xlim(-0.5, len(entries) - 0.5)
    axes.set_xticks(range(len(entries)), [entry["commit"] for entry in entries], rotation=60,
                    fontsize=7)
    axes.tick_params(axis="y", labelsize=7)


def page(arguments):
    """Draws the history."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        sys.exit("history.py page needs the package python3-matplotlib")
    entries = read_history(arguments.history)
    if not entries:
        sys.exit(f"{arguments.history}: no results")
    plots = []
    for name, seen in places(entries).items():
        if not any(number(row[key]) is not None for _, row in seen for key in ("ratio", "figure")):
            continue
        figure = Figure(figsize=(4.2, 2.6), layout="constrained")
        draw(figure, name, seen, entries)
        picture = io.BytesIO()
        figure.savefig(picture, format="svg")
        data = base64.b64encode(picture.getvalue()).decode()
        plots.append(f'<img alt="{html.escape(name)}" src="data:image/svg+xml;base64,{data}">')
    runs = "\n".join(
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in (
            entry["time"], entry["commit"], *entry["machine"].values())) + "</tr>"
        for entry in entries)
    with open(arguments.page, "w", encoding="utf-8") as file:
        file.write(f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>simverbs: results of ./dev bench</title>
<style>body {{ font-family: sans-serif; margin: 2em; }} img {{ width: 420px; }}
table {{ border-collapse: collapse; font-size: 0.8em; }}
td {{ padding: 0.1em 0.8em 0.1em 0; }}</style>
</head><body><h1>Results of ./dev bench</h1>
<p>Filled: the machine was otherwise idle. Hollow: one processor was busy with another program; how
far the two are apart shows how much a figure depends on the load of the machine. Dashed: the
budget. A colour for each machine. Where a row has a peer, its ratio to that peer in the same run is
drawn.</p>
{chr(10).join(plots)}
<h2>Runs</h2><table>
{runs}
</table></body></html>
""")


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description="Results of ./dev bench, kept and drawn.")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("add", help="add a result to a history")
    command.add_argument("--rows", required=True, help="what tests/bench/run --rows wrote")
    command.add_argument("--busy", help="the same, of a run beside a program that computes")
    command.add_argument("history")
    command.set_defaults(do=add)
    command = commands.add_parser("page", help="draw a history")
    command.add_argument("history")
    command.add_argument("page")
    command.set_defaults(do=page)
    arguments = parser.parse_args()
    try:
        arguments.do(arguments)
    except OSError as error:
        sys.exit(f"history.py: {error}")


if __name__ == "__main__":
    main()
