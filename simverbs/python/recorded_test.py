"""A test of pytest and its world: what it recorded, and what is kept of it when it fails."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Optional

import pytest

from simverbs.command import draw_ladder
from simverbs.durations import text_of
from simverbs.errors import Error
from simverbs.faults import faults_of_world
from simverbs.pyverbs_contexts import close_contexts
from simverbs.world import World

TRACE = "trace.jsonl"
CAPTURE = "capture.pcapng"
LADDER = "ladder.svg"
EXPLANATION = "explanation.txt"

# Options of pytest that a single test needs, too; those with a value.
_KEPT_FLAGS = ("--simverbs",)
_KEPT_OPTIONS = ("-p", "-c", "-o", "--rootdir", "--confcutdir", "--import-mode")
# Variables that decide which library and which world a test gets.
_KEPT_VARIABLES = (
    "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTHONPATH",
)


class RecordedTest:
    """Makes the world of a test, and records it in a temporary folder.

    `record` is "all", "trace" (no packets) or "none". Raises Error as World does.
    """

    def __init__(self, item: pytest.Item, settings: dict[str, Any], record: str) -> None:
        self._item = item
        self._notes: list[str] = []
        self._temporary = tempfile.TemporaryDirectory(prefix="simverbs-test-")
        self._verdict = ""
        self.has_failed = False
        self.world = World(**settings)
        try:
            self._record(record)
        except BaseException:
            self.world.close(force=True)
            raise

    def _record(self, record: str) -> None:
        folder = Path(self._temporary.name)
        if record == "none":
            self._notes.append("nothing was recorded: --simverbs-record=none")
            return
        if not self._is_elsewhere("SIMVERBS_TRACE"):
            self.world.trace(folder / TRACE)
        if not self._is_elsewhere("SIMVERBS_PCAP") and record == "all":
            self.world.capture_to(folder / CAPTURE)

    def _is_elsewhere(self, variable: str) -> bool:
        """Whether a variable of the environment has opened a file for it."""
        path = os.environ.get(variable)
        if path:
            self._notes.append(f"{variable} has a file: {path}")
        return bool(path)

    def judge(self) -> str:
        """What was not as the scenario of the test expects; "": all was, or it has none."""
        if self.world.is_open and self.world.has_scenario:
            self._verdict = self.world.end_scenario()
        return self._verdict

    def close(self) -> None:
        """Ends the world, with what pyverbs has open.

        Raises Error (EBUSY) where others have devices open; they are closed then.
        """
        self.judge()
        close_contexts()
        try:
            self.world.close()
        except Error:
            self.world.close(force=True)
            if not self.has_failed:
                raise
        finally:
            self._temporary.cleanup()

    def keep(self) -> tuple[str, Path]:
        """Keeps what was recorded, and returns the report and the folder."""
        self.has_failed = True
        folder = _folder_of(self._item)
        why = self._explain()
        self._end_files()
        report = [why.rstrip("\n"), ""]
        try:
            names = self._store(folder, why)
        except OSError as error:
            report.append(f"nothing is kept in {folder}: {error}")
        else:
            report += [f"kept in {folder}:", *(f"    {name}" for name in names)]
        report += [*self._notes, "run it again:", f"    {reproducer(self._item)}"]
        return "\n".join(report) + "\n", folder

    def _store(self, folder: Path, why: str) -> list[str]:
        """Fills the folder; returns the names of the files. Raises OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        names = [TRACE, CAPTURE, LADDER, EXPLANATION]
        for name in names:
            (folder / name).unlink(missing_ok=True)  # of a run before
        for name in (TRACE, CAPTURE):
            recorded = Path(self._temporary.name) / name
            if recorded.exists():
                shutil.copyfile(recorded, folder / name)
        (folder / EXPLANATION).write_text(why, encoding="utf-8")
        if (folder / TRACE).exists():
            try:
                draw_ladder(folder / TRACE, folder / LADDER)
            except Error as error:
                self._notes.append(f"{LADDER} was not drawn: {error}")
        return [name for name in names if (folder / name).exists()]

    def _explain(self) -> str:
        if not self.world.is_open:
            return "the world of the test has ended\n"
        verdict = self.judge()
        try:
            why = self.world.explain() or "no work request has failed, and no datagram was lost\n"
        except Error as error:
            why = f"no explanation: {error}\n"
        waits = self.world.waits()
        faults = [f"  {each.describe()}\n" for each in faults_of_world()]
        mark = self.world.not_deterministic()
        end = f"virtual time {text_of(self.world.now())}, run digest {self.world.run_digest():016x}"
        end += f", not deterministic: {mark}" if mark else ", deterministic"
        parts = [verdict, why, *(["faults:\n", *faults] if faults else [])]
        return "".join([*parts, "queue pairs:\n", waits.rstrip("\n"), "\n", end, "\n"])

    def _end_files(self) -> None:
        """Closes trace and capture, so that the files are complete."""
        if not self.world.is_open:
            return
        for end in (self.world.end_trace, self.world.end_capture):
            try:
                end()
            except Error as error:
                self._notes.append(str(error))


def _folder_of(item: pytest.Item) -> Path:
    name = re.sub(r"[^\w.\-]+", "_", item.nodeid).strip("_")
    base = Path(item.config.getoption("simverbs_folder"))
    return (base if base.is_absolute() else item.config.rootpath / base) / name


def reproducer(item: pytest.Item) -> str:
    """A line for a shell that runs this test alone, with the same library and settings."""
    variables = [
        f"{name}={shlex.quote(_absolute(name, value))}"
        for name, value in sorted(os.environ.items())
        if value and (name in _KEPT_VARIABLES or name.startswith("SIMVERBS_"))
    ]
    words = [sys.executable, "-m", "pytest", *_kept_options(item.config), item.nodeid]
    where = f"cd {shlex.quote(str(item.config.rootpath))} &&"
    return " ".join([where, *variables, *map(shlex.quote, words)])


def _absolute(name: str, value: str) -> str:
    if name not in ("PYTHONPATH", "LD_LIBRARY_PATH"):
        return value
    return os.pathsep.join(os.path.abspath(each) for each in value.split(os.pathsep) if each)


def _kept_options(config: pytest.Config) -> list[str]:
    kept: list[str] = []
    option: Optional[str] = None
    for word in config.invocation_params.args:
        text = str(word)
        if option is not None:
            is_file = option in ("-c", "--rootdir", "--confcutdir")
            kept += [option, os.path.abspath(text) if is_file else text]
            option = None
        elif text in _KEPT_FLAGS or text.startswith(tuple(f"{each}=" for each in _KEPT_OPTIONS)):
            kept.append(text)
        elif text in _KEPT_OPTIONS:
            option = text
        elif text[:2] in _KEPT_OPTIONS and not text.startswith("--"):
            kept.append(text)  # -pNAME
    return kept
