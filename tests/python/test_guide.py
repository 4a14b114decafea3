"""The test in `docs/guides/python.md` fails without its fault. tests/docs runs the guide itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "python.md"


def file_of_guide(name: str) -> str:
    block = re.search(rf"```{{file}} {re.escape(name)}\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert block is not None
    return block[1]


@pytest.mark.parametrize(("nth", "outcome"), [(1, {"passed": 1}), (2, {"failed": 1})])
def test_the_lost_packet_is_what_it_tests(
    pytester: pytest.Pytester, nth: int, outcome: dict[str, int]
) -> None:
    (pytester.path / "conftest.py").write_text(file_of_guide("conftest.py"))
    test = file_of_guide("test_loss.py").replace("attempt=1)", f"attempt=1, nth={nth})")
    assert f"nth={nth}" in test
    (pytester.path / "test_loss.py").write_text(test)
    result = pytester.runpytest_subprocess("--simverbs", "-p", "no:cacheprovider")
    result.assert_outcomes(**outcome)
    if nth == 2:
        result.stdout.fnmatch_lines(["*assert 0 == 1*", "run it again:"])
