"""Functions that ask the `simverbs` command: what needs no world in this process."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Union

from simverbs import library
from simverbs.errors import Error

_USAGE = 2
PathText = Union[str, Path]


def _run(*words: PathText) -> subprocess.CompletedProcess[str]:
    """Runs the command. Raises Error: EINVAL with what it says of wrong usage or input; ENOENT."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("SIMVERBS_")
    }
    command = library.command()
    try:
        ended = subprocess.run(
            [str(command), *map(str, words)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise Error(error.errno or errno.EIO, f"{command}: {error.strerror}") from None
    if ended.returncode not in (0, 1):
        said = (ended.stderr or ended.stdout).strip().removeprefix("simverbs: ")
        number = errno.EINVAL if ended.returncode == _USAGE else errno.EIO
        raise Error(number, said or f"simverbs {words[0]} ended with {ended.returncode}")
    return ended


def explain_trace(
    trace: PathText,
    *,
    node: Optional[str] = None,
    qp_num: Optional[int] = None,
    request: Optional[int] = None,
) -> str:
    """Why something in a trace file failed, in sentences, a line each.

    Of the first failure, or of one at `node` ("h0"), of its queue pair `qp_num`, of its work
    request number `request` (from 0). Where nothing has failed it says so. Raises Error: EINVAL
    where the file is no trace or has no such queue pair or request, ENOENT without the command.
    """
    words: list[PathText] = ["explain", trace]
    if node is not None:
        words += ["--node", node]
    if qp_num is not None:
        words += ["--qp", str(qp_num)]
    if request is not None:
        words += ["--wr", str(request)]
    return _run(*words).stdout


def draw_ladder(trace: PathText, picture: PathText, *, packets: bool = False) -> None:
    """Draws the messages of a trace as a ladder, an arrow each; with `packets` an arrow a packet.

    `picture` ends in .svg. Raises Error as `explain_trace()`.
    """
    ended = _run("viz", "ladder", trace, *(["--packets"] if packets else []), "-o", picture)
    if ended.returncode != 0:
        raise Error(errno.EIO, ended.stderr.strip() or "simverbs viz ladder failed")


@dataclass(frozen=True)
class ScenarioResult:
    """How a scenario ended."""

    passed: bool
    report: str  # what the command says of it
    verdict: Mapping[str, Any]  # the same as data: `simverbs scenario --json`

    def __bool__(self) -> bool:
        return self.passed


def run_scenario(
    path: PathText,
    *,
    settings: Optional[Mapping[str, object]] = None,
    trace: Optional[PathText] = None,
) -> ScenarioResult:
    """Runs a scenario file in a process of its own, and judges it.

    `settings` changes keys of the file: `{"run.seed": 7}`. `trace` keeps every event in a file.
    Raises Error: EINVAL with the place in the file where it has a mistake, ENOENT without the
    command.
    """
    words: list[PathText] = ["scenario", path]
    for key, value in (settings or {}).items():
        words += ["--set", f"{key}={value}"]
    if trace is not None:
        words += ["--trace", trace]
    with tempfile.TemporaryDirectory(prefix="simverbs-") as folder:
        result = Path(folder) / "result.json"
        ended = _run(*words, "--json", result)
        verdict = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}
    return ScenarioResult(ended.returncode == 0, ended.stdout + ended.stderr, verdict)
