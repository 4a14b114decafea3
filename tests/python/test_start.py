"""How pytest is started: which library is loaded, and the message about another one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from user_tests import CUT, LOST, forget_settings, run


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_settings(monkeypatch)


PLAIN = """
import pyverbs.device
def test_it(simverbs_world):
    pass
"""


def test_without_the_option_the_machines_library_is_named(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    pytester.makepyfile(test_it=PLAIN)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["simverbs_world: *has loaded /*/libibverbs.so.1*, which has no simulated devices*"]
    )
    assert "another exception" not in result.stdout.str()
    folder = re.search(r"LD_LIBRARY_PATH=(\S+)", result.stdout.str())
    assert folder is not None
    assert "`pytest --simverbs`" in result.stdout.str()
    # The advice in the message works.
    monkeypatch.setenv("LD_LIBRARY_PATH", folder[1])
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_an_ini_file_can_have_the_option(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\naddopts = --simverbs -p no:cacheprovider\n")
    pytester.makepyfile(test_it=PLAIN)
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_the_plugin_may_be_named_besides(pytester: pytest.Pytester) -> None:
    result = run(pytester, "-p", "simverbs.pytest_plugin", test_it=LOST + CUT)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*-m pytest --simverbs * -p simverbs.pytest_plugin *test_cut*"])


def test_a_missing_library_is_a_usage_error(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    copy = pytester.mkdir("copy")
    import simverbs

    source = Path(simverbs.__file__).parent
    (copy / "simverbs").mkdir()
    for each in source.glob("*.py"):
        (copy / "simverbs" / each.name).write_text(each.read_text())
    monkeypatch.setenv("PYTHONPATH", str(copy))
    result = pytester.runpytest_subprocess("-p", "simverbs.pytest_plugin", "--simverbs")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--simverbs: libibverbs.so.1 of simverbs is neither in /*"])
