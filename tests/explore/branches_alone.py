"""Checks that each branch of a program that is forked ends as it does alone: with the same output,
status and virtual time, and that branches share processes where they can.

    python3 branches_alone.py SIMVERBS LIBRARIES PROGRAM [OPTION...]

OPTIONs are those of `simverbs explore`. Branches whose act makes processes are left out: after a
fork, their helper thread looks later, and their virtual time is another one.
"""

import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

REPORT = struct.Struct("<IIQiIqQQ")  # struct BranchReport (simverbs/model/branch_report.hpp)
FIRED, ENDED, NOT_FORKED, WORLD_ENDED = 1, 2, 3, 4
FORKING = re.compile(r"- \{name: (branch\d+), ")
PROCESS = re.compile(r"process (\d+)")  # as the program says, if it does
LIMIT_MS = 20000


def keep_scenario(folder, program):
    """Copies the scenario that the program is started with, and becomes the program."""
    shutil.copy(os.environ["SIMVERBS_SCENARIO"], f"{folder}/{os.getpid()}.yaml")
    os.execv(program, [program])


class Run:
    """A run of the program with a scenario, as `simverbs explore` starts it."""

    def __init__(self, libraries, program, scenario):
        self.ended, self.time, self.fired, self.obstacles = {}, {}, set(), {}
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            (place / "scenario.yaml").write_text(scenario, encoding="utf-8")
            with open(place / "output", "a", encoding="utf-8") as output:
                files = f"{folder}/reports\n{folder}/output"
                environment = dict(
                    os.environ,
                    SIMVERBS_SCENARIO=f"{folder}/scenario.yaml",
                    SIMVERBS_WARN="1",
                    LD_LIBRARY_PATH=libraries,
                    LD_BIND_NOW="1",
                    SIMVERBS_BRANCHES=f"{os.getpid()}\n{LIMIT_MS}\n{files}",
                )
                self.status = subprocess.run(
                    [program],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=environment,
                    check=False,
                ).returncode
            self.output = (place / "output").read_text(encoding="utf-8", errors="replace")
            self.read((place / "reports").read_bytes())

    def read(self, reports):
        while reports:
            kind, name_bytes, text_bytes, status, _, time, _, _ = REPORT.unpack_from(reports)
            text = reports[REPORT.size + name_bytes : REPORT.size + name_bytes + text_bytes]
            name = reports[REPORT.size : REPORT.size + name_bytes].decode()
            reports = reports[REPORT.size + name_bytes + text_bytes :]
            if kind == ENDED:
                output = text.decode(errors="replace")
                self.ended[name] = (os.waitstatus_to_exitcode(status), output)
            elif kind == WORLD_ENDED:
                self.time[name] = time
            elif kind == FIRED:
                self.fired.add(name)
            elif kind == NOT_FORKED:
                self.obstacles[name] = text.decode()


def without_names(output):
    return PROCESS.sub("process", re.sub(r'"(choice|branch)\d+"', "the fault", output))


def compare(libraries, program, scenario):
    """Returns how many branches there are, how many end otherwise alone, and the processes of those
    that say in which they ran."""
    lines = scenario.splitlines()
    common = "\n".join(line for line in lines if not FORKING.match(line))
    forked = Run(libraries, program, scenario)
    branches = unlike = 0
    processes = []
    for line in lines:
        match = FORKING.match(line)
        if not match or match[1] in forked.obstacles:
            continue
        name = match[1]
        alone = Run(libraries, program, f"{common}\n{line.replace(name, 'choice1', 1)}\n")
        branches += 1
        if name not in forked.ended:
            seen, expected = "it did not begin", "it did not begin"
            expected = "it began" if alone.fired else seen
        else:
            status, output = forked.ended[name]
            processes += PROCESS.findall(output)[:1]
            seen = (status, without_names(output), forked.time.get(name))
            expected = (alone.status, without_names(alone.output), alone.time.get(""))
            if "a child ended" in output or "a shell ended" in output:
                seen, expected = seen[:2], expected[:2]
        if seen != expected:
            unlike += 1
            print(f"{line}\n  forked: {seen}\n  alone:  {expected}")
    return branches, unlike, processes


def main():
    if sys.argv[1] == "--keep":
        keep_scenario(*sys.argv[2:])
    simverbs, libraries, program, *options = sys.argv[1:]
    branches = unlike = 0
    processes = []
    with tempfile.TemporaryDirectory() as folder:
        explored = subprocess.run(
            [simverbs, "explore", "--keep", f"{folder}/kept", *options, "--"]
            + [sys.executable, os.path.abspath(__file__), "--keep", folder, program],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
        )
        print(explored.stdout[-300:] if explored.returncode <= 1 else explored.stderr)
        for scenario in sorted(pathlib.Path(folder).glob("*.yaml")):
            text = scenario.read_text(encoding="utf-8")
            if FORKING.search(text):
                found = compare(libraries, program, text)
                branches += found[0]
                unlike += found[1]
                processes += found[2]
    print(f"{branches} branches, {unlike} of them end otherwise alone")
    print(f"{len(processes)} of them say their process: {len(set(processes))} processes")
    shares = not processes or len(set(processes)) < len(processes)
    sys.exit(0 if branches > 20 and unlike == 0 and shares else 1)


main()
