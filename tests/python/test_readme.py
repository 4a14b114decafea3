"""The example of the folder's README is a test that passes, as it stands there."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "simverbs" / "python" / "README.md"


def example() -> tuple[str, str]:
    """The file and the command of the README's first section."""
    test, command = blocks_of("## A test", "`--simverbs` loads")
    return test, command.strip()


def blocks_of(begin: str, end: str) -> list[str]:
    """The indented blocks of the README between these words."""
    text = README.read_text().split(begin)[1].split(end)[0]
    blocks = re.findall(r"\n\n((?:(?:    .*)?\n)+)", text)
    return [textwrap.dedent(block).strip() + "\n" for block in blocks]


def test_the_example_passes(pytester: pytest.Pytester) -> None:
    test, command = example()
    (pytester.path / "test_loss.py").write_text(test)
    assert command.split()[0] == "pytest"
    result = pytester.runpytest_subprocess(*command.split()[1:], "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)


def test_the_example_fails_without_its_fault(pytester: pytest.Pytester) -> None:
    test, command = example()
    (pytester.path / "test_loss.py").write_text(test.replace("attempt=1)", "attempt=1, nth=2)"))
    result = pytester.runpytest_subprocess(*command.split()[1:], "-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*assert 0 == 1*", "run it again:"])


def test_the_program_without_pytest_prints_what_it_says(pytester: pytest.Pytester) -> None:
    (program,) = blocks_of("A program without pytest", "## When it fails")
    said = re.findall(r"print\(.*\)  # (.*)", program)
    result = pytester.runpython(pytester.makepyfile(program))
    assert result.ret == 0
    assert result.outlines == [said[0], said[1].partition(":")[0]]
