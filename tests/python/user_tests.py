"""Tests as users write them, and a separate pytest process that runs them."""

from __future__ import annotations

import os
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


def run(pytester: pytest.Pytester, *options: str, **files: str) -> pytest.RunResult:
    """The result of tests with the head above."""
    pytester.makepyfile(**{name: HEAD + text for name, text in files.items()})
    return pytester.runpytest_subprocess("--simverbs", "-p", "no:cacheprovider", *options)


def forget_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the settings of the environment that runs these tests."""
    for name in [name for name in os.environ if name.startswith("SIMVERBS_")]:
        monkeypatch.delenv(name)
