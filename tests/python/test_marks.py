"""Marks and the fixture: the world that each test has."""

from __future__ import annotations

import pytest
from user_tests import HERE, LOST, forget_settings, run


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_settings(monkeypatch)


def test_a_lost_packet_is_sent_again(pytester: pytest.Pytester) -> None:
    result = run(pytester, test_it=LOST)
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"simverbs: \d+\.\d+\.\d+, /.*/libibverbs.so.1"])
    assert not (pytester.path / "simverbs-failures").exists()


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
        ('topolgy="star:2"', "mark simverbs: there is no 'topolgy'; there are topology, *"),
        ('"star:2"', "mark simverbs: 'star:2' needs a keyword, as topology=..."),
        ('personality="mlx9"', "simverbs_world: World: personality: *mlx9*spec, connectx6, rxe*"),
        ("seed=1.5", "simverbs_world: World: seed: 1.5 is float, not a str or an int"),
        ('record="some"', "mark simverbs: record: 'some' is none of all, trace, none"),
        ('scenario="none.yaml"', "simverbs_world: *none.yaml*"),
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
    result.stdout.fnmatch_lines([message])
    assert "another exception" not in result.stdout.str()


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
