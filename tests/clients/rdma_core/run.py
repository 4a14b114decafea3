"""run.py SIMVERBS LIBRARIES TOPOLOGY PERSONALITY embedded|served: runs rdma-core's tests of verbs,
which come with python3-pyverbs, in a world, and compares with expected.txt what became of them."""

import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
INSTALLED = pathlib.Path("/usr/share/doc/rdma-core/tests")
PACKAGE = "python3-pyverbs"
PYTHON = "/usr/bin/python3"  # Debian's, for which pyverbs is built
ADDRESS = "127.77.0.0"  # of h0
SECONDS = 300


def unpack_tests(folder):
    """Puts the tests into folder / "tests". Small systems install no documentation."""
    source = INSTALLED
    if not source.is_dir():
        subprocess.run(["apt-get", "download", PACKAGE], cwd=folder, check=True)
        (archive,) = folder.glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", archive, folder / "package"], check=True)
        source = folder / "package" / INSTALLED.relative_to("/")
    target = folder / "tests"
    target.mkdir()
    for path in source.iterdir():
        if path.suffix == ".gz":
            (target / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
        elif path.is_file():
            (target / path.name).write_bytes(path.read_bytes())


def play(folder, simverbs, libraries, topology, personality, way):
    """Returns what became of each test, and the output."""
    result = folder / "result.json"
    command = [PYTHON, "-B", str(HERE / "play.py"), str(folder), str(result)]
    environment = {name: text for name, text in os.environ.items() if name[:9] != "SIMVERBS_"}
    if way == "embedded":
        environment["LD_LIBRARY_PATH"] = libraries
        environment["SIMVERBS_TOPOLOGY"] = topology
        environment["SIMVERBS_PERSONALITY"] = personality
    else:
        programs = " ".join([*command, ADDRESS])
        command = [simverbs, "run", topology, "--personality", personality, f"h0={programs}"]
    done = subprocess.run(
        command,
        env=environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
    )
    return json.loads(result.read_text()) if result.exists() else {}, done.stdout


def read_expectations(way, topology, personality):
    """Returns the tests that fail in this world, those that may, and the reasons of skipped ones."""
    world = {way, personality, "ethernet" if topology.startswith("eth-") else "infiniband"}
    failures, varying, reasons = set(), set(), []
    for line in (HERE / "expected.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        kind, where, text = line.split(maxsplit=2)
        if where != "all" and not set(where.split(",")) <= world:
            continue
        if kind == "fails":
            failures.add(text)
        elif kind == "varies":
            varying.add(text)
        else:
            reasons.append(re.compile(text))
    return failures, varying, reasons


def compare(outcomes, failures, varying, reasons):
    """Returns what is not as expected."""
    missing = sorted((failures | varying) - set(outcomes))
    wrong = [f"{test} is in expected.txt, and there is no such test" for test in missing]
    for test, outcome in outcomes.items():
        if test in varying:
            continue
        if (outcome == "failed") != (test in failures):
            wrong.append(f"{test}: {outcome}")
        elif outcome not in ("ok", "failed") and not any(each.search(outcome) for each in reasons):
            wrong.append(f"{test}: skipped: {outcome}")
    return wrong


def main():
    simverbs, libraries, topology, personality, way = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        unpack_tests(folder)
        outcomes, output = play(folder, simverbs, libraries, topology, personality, way)
    wrong = compare(outcomes, *read_expectations(way, topology, personality))
    passed = sum(outcome == "ok" for outcome in outcomes.values())
    print(f"{passed} of {len(outcomes)} tests of rdma-core have passed")
    if wrong or passed == 0:
        print(output)
        print("\n".join(wrong))
        sys.exit(1)


if __name__ == "__main__":
    main()
