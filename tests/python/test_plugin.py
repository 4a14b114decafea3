"""The plugin of pytest, as a user has it: pytest in a process of its own, on tests by pyverbs."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
HEAD = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
import pyverbs.enums as e
import pytest
from ends import exchange, pair
from pyverbs.device import Context
import simverbs
"""
LOST = """
@pytest.mark.simverbs(topology="star:2", seed=3)
def test_a_lost_packet_is_sent_again(simverbs_world):
    a, b = pair()
    lost = simverbs.drop(src="h0", psn=1, attempt=1)
    exchange(a, b)
    assert lost.fired == 1
"""
CUT = """
@pytest.mark.simverbs(topology="star:2", seed=3)
@pytest.mark.parametrize("size", ["small one"])
def test_cut(simverbs_world, size):
    a, b = pair(retries=2)
    simverbs.drop(src="h0", psn=1, count="every", name="cut")
    exchange(a, b)
"""


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("SIMVERBS_")]:
        monkeypatch.delenv(name)


def run(pytester: pytest.Pytester, *options: str, **files: str) -> pytest.RunResult:
    """The result of tests with the head above."""
    pytester.makepyfile(**{name: HEAD + text for name, text in files.items()})
    return pytester.runpytest_subprocess("--simverbs", "-p", "no:cacheprovider", *options)


def test_a_lost_packet_is_sent_again(pytester: pytest.Pytester) -> None:
    result = run(pytester, test_it=LOST)
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"simverbs: \d+\.\d+\.\d+, /.*/libibverbs.so.1"])
    assert not (pytester.path / "simverbs-failures").exists()


def test_a_failing_test_shows_why_and_what_it_kept(pytester: pytest.Pytester) -> None:
    result = run(pytester, test_it=LOST + CUT)
    result.assert_outcomes(passed=1, failed=1)
    folder = pytester.path / "simverbs-failures" / "test_it.py_test_cut_small_one"
    result.stdout.fnmatch_lines(
        [
            "*- simverbs -*",
            "*request 0 of h0 QP 0x10001 completed with RETRY_EXC_ERR*",
            '*Root: the injected fault "cut" (drop) fired at 0ps: at h0, SEND_ONLY*',
            "host h0",
            "virtual time *ms, run digest *, deterministic",
            f"kept in {folder}:",
            "*trace.jsonl",
            "*capture.pcapng",
            "*ladder.svg",
            "run it again:",
        ]
    )
    assert '"cut"' in (folder / "explanation.txt").read_text()
    assert "cut" in (folder / "ladder.svg").read_text()
    assert (folder / "capture.pcapng").read_bytes().startswith(b"\x0a\x0d\x0d\x0a")


def test_the_reproducer_fails_again_with_the_same_digest(pytester: pytest.Pytester) -> None:
    (pytester.path / "sub folder").mkdir()
    (pytester.path / "sub folder" / "test_it.py").write_text(HEAD + LOST + CUT)
    result = pytester.runpytest_subprocess("--simverbs", "-p", "no:cacheprovider")
    lines = result.outlines
    command = lines[lines.index("run it again:") + 1].strip()
    again = subprocess.run(
        command, shell=True, cwd="/", text=True, stdout=subprocess.PIPE, check=False
    )
    assert again.returncode == 1, again.stdout
    assert "1 failed" in again.stdout and "passed" not in again.stdout
    digests = set(re.findall(r"run digest (\w{16})", result.stdout.str() + again.stdout))
    assert len(digests) == 1
    assert "no:cacheprovider" in command


def test_the_reproducer_has_the_environment(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMVERBS_PERSONALITY", "connectx6")
    result = run(
        pytester,
        test_it="""
def test_it(simverbs_world):
    with Context(name="simverbs0") as context:
        assert context.query_device().vendor_id != 0x02c9
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*SIMVERBS_PERSONALITY=connectx6 */python3 -m pytest*"])
    result.stdout.fnmatch_lines(["*no work request has failed, and no datagram was lost*"])


def test_each_test_has_a_fresh_world(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        test_it="""
kept = []
@pytest.mark.parametrize("n", range(3))
def test_time_begins_at_zero(simverbs_world, n):
    assert simverbs_world.now() == 0
    simverbs_world.advance("1ms")
    simverbs.drop()
    kept.append((Context(name="simverbs0"), pair()))  # closed at the end of the test

def test_without_a_world():
    assert simverbs.current() is None
""",
    )
    result.assert_outcomes(passed=4)
    assert result.ret == 0


def test_marks_make_the_world(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        test_it="""
pytestmark = pytest.mark.simverbs(topology="star:3", personality="rxe")

@pytest.mark.simverbs(seed=9)
class TestMarks:
    def test_of_the_module(self, simverbs_world):
        assert len(simverbs_world.devices()) == 3

    @pytest.mark.simverbs(topology="pair")
    def test_the_nearest_precedes(self, simverbs_world):
        assert len(simverbs_world.devices()) == 2

@pytest.fixture
def context():
    return Context(name="simverbs2")

def test_a_mark_is_enough(context):
    assert len(simverbs.current().devices()) == 3
    assert context.query_device().vendor_id == 0xFFFFFF

@pytest.mark.simverbs(topology="two_rails.yaml")
def test_of_a_topology_beside_the_test(simverbs_world):
    assert len(simverbs_world.devices()) == 8
""",
        conftest="""
import shutil
from pathlib import Path
shutil.copy({!r}, Path(__file__).parent)
""".format(str(HERE.parents[1] / "scenarios" / "topologies" / "two_rails.yaml")),
    )
    result.assert_outcomes(passed=4)


def test_tests_of_unittest_have_worlds(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        test_it="""
import unittest

@pytest.mark.simverbs(topology="star:2")
class Exchange(unittest.TestCase):
    def setUp(self):
        self.ends = pair()

    def test_it(self):
        exchange(*self.ends)
""",
    )
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ('topolgy="star:2"', "*there is no 'topolgy'; there are topology, personality,*"),
        ('"star:2"', "*'star:2' needs a keyword, as topology=...*"),
        ('personality="mlx9"', "*personality: *mlx9*spec, connectx6, rxe*"),
        ("seed=1.5", "*seed: 1.5 is float, not a str or an int*"),
        ('record="some"', "*'some' is none of all, trace, none*"),
        ('scenario="none.yaml"', "*none.yaml*"),
    ],
)
def test_wrong_marks_are_refused(pytester: pytest.Pytester, mark: str, message: str) -> None:
    result = run(
        pytester,
        test_it=f"""
@pytest.mark.simverbs({mark})
def test_it(simverbs_world):
    pass

def test_after(simverbs_world):
    assert simverbs_world.now() == 0
""",
    )
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines([f"*mark simverbs: {message.lstrip('*')}"
                                 if message.startswith("*there") else message])


def test_a_scenario_makes_and_judges_the_world(pytester: pytest.Pytester) -> None:
    scenario = """
fabric: star:2
faults: [{name: lost, action: drop, when: {qp: h0/1, psn: 1, attempt: 1}}]
expect: {fired: {lost: %d}}
"""
    (pytester.path / "good.yaml").write_text(scenario % 1)
    (pytester.path / "false.yaml").write_text(scenario % 2)
    result = run(
        pytester,
        test_it="""
@pytest.mark.simverbs(scenario="good.yaml")
def test_as_expected():
    exchange(*pair())

@pytest.mark.simverbs(scenario="false.yaml")
def test_otherwise():
    exchange(*pair())

@pytest.mark.xfail(strict=True)
@pytest.mark.simverbs(scenario="false.yaml")
def test_fails_as_it_should():
    exchange(*pair())
""",
    )
    result.assert_outcomes(passed=1, failed=1, xfailed=1)
    result.stdout.fnmatch_lines(
        ["*expected: firings of lost: 2*", "*kept in *test_it.py_test_otherwise:"]
    )
    assert len(list((pytester.path / "simverbs-failures").iterdir())) == 1


def test_an_expected_failure_does_not_change_the_exit_status(pytester: pytest.Pytester) -> None:
    (pytester.path / "false.yaml").write_text("expect: {fired: {lost: 2}}\nfaults: [{name: lost, "
                                              "action: link_down, link: h0-s0}]\n")
    result = run(
        pytester,
        test_it="""
@pytest.mark.xfail(strict=True)
@pytest.mark.simverbs(scenario="false.yaml")
def test_fails_as_it_should():
    pass
""",
    )
    result.assert_outcomes(xfailed=1)
    assert result.ret == 0


def test_a_device_that_others_leave_open_fails_the_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        test_it="""
import ctypes

def test_leaves(simverbs_world):
    verbs = ctypes.CDLL("libibverbs.so.1")
    verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
    verbs.ibv_open_device.argtypes = (ctypes.c_void_p,)
    verbs.ibv_open_device.restype = ctypes.c_void_p
    assert verbs.ibv_open_device(verbs.ibv_get_device_list(None)[0])

def test_after(simverbs_world):
    pass
""",
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*the test leaves a device open: *simverbs0 with 0 queue pairs*"])


@pytest.mark.parametrize(
    ("option", "files"),
    [("trace", {"trace.jsonl", "ladder.svg", "explanation.txt"}), ("none", {"explanation.txt"})],
)
def test_less_is_recorded_when_asked(
    pytester: pytest.Pytester, option: str, files: set[str]
) -> None:
    run(pytester, f"--simverbs-record={option}", "--simverbs-folder=kept", test_it=CUT)
    assert {each.name for each in (pytester.path / "kept").glob("*/*")} == files


def test_a_failure_in_a_later_fixture_is_explained(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        test_it="""
@pytest.fixture
def ends(simverbs_world):
    ends = pair(retries=1)
    simverbs.drop(src="h0", count="every")
    exchange(*ends)

def test_it(ends):
    pass
""",
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*RETRY_EXC_ERR*", "run it again:"])


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
        ["*has loaded /*/libibverbs.so.1*, which has no simulated devices*"]
    )
    folder = re.search(r"LD_LIBRARY_PATH=(\S+)", result.stdout.str())
    assert folder is not None
    assert "`pytest --simverbs`" in result.stdout.str()
    # What it says to do works.
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
