"""The example of the folder's README is a test that passes, as it stands there."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "simverbs" / "python" / "README.md"


def example() -> tuple[str, str]:
    """The file and the command of the README's first section."""
    text = README.read_text()
    blocks = re.findall(r"\n\n((?:(?:    .*)?\n)+)", text.split("## When it fails")[0])
    test, command = (textwrap.dedent(block).strip() + "\n" for block in blocks)
    return test, command.strip()


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
