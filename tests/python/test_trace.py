"""Traces, captures, and functions that run the command: explanations, ladders, scenarios."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import simverbs

simverbs.load()

from ends import exchange, pair  # noqa: E402  the library comes first

LIBRARY = Path(__file__).parents[2] / "scenarios" / "library"


@pytest.fixture
def world() -> Iterator[simverbs.World]:
    with simverbs.World(topology="star:2", seed=3) as world:
        yield world


def send_over_a_lossy_link(world: simverbs.World) -> None:
    simverbs.drop(src="h0", psn=1, attempt=1, name="lost")
    ends = pair()
    exchange(*ends)
    for end in ends:
        end.close()


def test_records_are_read_while_the_world_goes_on(world: simverbs.World) -> None:
    with world.trace() as trace:
        assert trace.count("completion") == 0
        send_over_a_lossy_link(world)
        statuses = [(each.node, each["status"]) for each in trace.records("completion")]
        assert sorted(statuses) == [("h0", "SUCCESS"), ("h1", "SUCCESS")]
        (fired,) = trace.records("fault_fired")
        assert (fired.node, fired.category, fired["action"]) == ("h0", "fault", "drop")
        assert fired.time_ps <= world.now()
    before = list(trace)
    world.set_link("h0-s0", False)
    assert list(trace) == before  # it has ended
    assert trace.count(node="h1", category="completion", status="SUCCESS") == 1


def test_a_trace_inside_a_trace_is_the_part_from_there_on(
    world: simverbs.World, tmp_path: Path
) -> None:
    outer = world.trace(tmp_path / "all.jsonl")
    send_over_a_lossy_link(world)
    with world.trace() as inner:
        assert list(inner) == []
        world.set_link("h0-s0", False)
        assert inner.count("link_state") > 0
        assert {each.node for each in inner} <= {"h0", "s0", ""}
    with pytest.raises(simverbs.Error, match="all.jsonl") as caught:
        world.trace(tmp_path / "other.jsonl")
    assert caught.value.errno == errno.EBUSY
    outer.close()
    outer.close()
    with world.trace(tmp_path / "other.jsonl") as another:
        assert another.count("completion") == 0
    assert simverbs.read_trace(tmp_path / "all.jsonl").count("completion") == 2


def test_a_trace_file_of_the_environment_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMVERBS_TRACE", str(tmp_path / "of_the_environment.jsonl"))
    with simverbs.World() as world:
        with pytest.raises(simverbs.Error, match="of_the_environment.jsonl") as caught:
            world.trace()
    assert caught.value.errno == errno.EBUSY
    assert simverbs.read_trace(tmp_path / "of_the_environment.jsonl").count("node") > 0


def test_a_record_says_what_it_has(world: simverbs.World) -> None:
    with world.trace() as trace:
        send_over_a_lossy_link(world)
    record = next(trace.records("completion"))
    assert "completion" in str(record) and "status=SUCCESS" in str(record)
    with pytest.raises(KeyError, match="completion has no field 'state'; it has .*status"):
        record["state"]


def test_a_trace_is_a_data_frame(world: simverbs.World) -> None:
    pandas = pytest.importorskip("pandas")
    with world.trace() as trace:
        send_over_a_lossy_link(world)
    frame = trace.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns[:4]) == ["time_ps", "node", "category", "name"]
    assert len(frame) == trace.count()
    assert set(frame[frame.name == "completion"].status) == {"SUCCESS"}


def test_without_pandas_there_is_no_frame(
    world: simverbs.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(cast(dict[str, Any], sys.modules), "pandas", None)
    with world.trace() as trace:
        with pytest.raises(simverbs.Error, match="python3-pandas") as caught:
            trace.to_pandas()
    assert caught.value.errno == errno.ENOSYS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("{}\n", ":1: no trace of simverbs"),
        ('{"schema":"simverbs-trace"}\nnone\n', ":2: no record"),
        ('{"schema":"simverbs-trace"}\n{"time":1}\n', ":2: a record without 'node'"),
    ],
)
def test_a_file_that_is_no_trace_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(simverbs.Error, match=message) as caught:
        list(simverbs.read_trace(tmp_path / "file"))
    assert caught.value.errno == errno.EINVAL


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(simverbs.Error, match="none.jsonl") as caught:
        list(simverbs.read_trace(tmp_path / "none.jsonl"))
    assert caught.value.errno == errno.ENOENT


def test_packets_are_captured(world: simverbs.World, tmp_path: Path) -> None:
    world.capture_to(tmp_path / "packets.pcapng")
    send_over_a_lossy_link(world)
    world.end_capture()
    assert (tmp_path / "packets.pcapng").read_bytes().startswith(b"\x0a\x0d\x0d\x0a")
    with pytest.raises(simverbs.Error) as caught:
        world.end_capture()
    assert caught.value.errno == errno.ENOENT
    with pytest.raises(simverbs.Error, match="cannot be written"):
        world.capture_to(tmp_path / "no" / "such" / "folder")


@pytest.fixture
def failed(tmp_path: Path) -> Path:
    """The trace of a run in which a send failed."""
    with simverbs.World(topology="star:2") as world:
        world.trace(tmp_path / "failed.jsonl")
        simverbs.drop(src="h0", psn=1, count="every", name="cut")
        a, b = pair(retries=2)
        a.send()
        a.wait()
        a.close()
        b.close()
    return tmp_path / "failed.jsonl"


def test_a_trace_file_is_explained(failed: Path) -> None:
    why = simverbs.explain_trace(failed)
    assert "RETRY_EXC_ERR" in why and '"cut" (drop)' in why
    assert simverbs.explain_trace(failed, node="h0", qp_num=0x10001, request=0) == why
    with pytest.raises(simverbs.Error) as caught:
        simverbs.explain_trace(failed, node="h9")
    assert caught.value.errno == errno.EINVAL
    with pytest.raises(simverbs.Error):
        simverbs.explain_trace("no_such_file.jsonl")


def test_a_ladder_is_drawn(failed: Path, tmp_path: Path) -> None:
    simverbs.draw_ladder(failed, tmp_path / "ladder.svg")
    assert "cut" in (tmp_path / "ladder.svg").read_text()
    with pytest.raises(simverbs.Error):
        simverbs.draw_ladder(failed, tmp_path / "ladder.doc")


def test_a_scenario_runs(tmp_path: Path) -> None:
    result = simverbs.run_scenario(
        LIBRARY / "status_retry_exc_err.yaml",
        settings={"run.seed": 7},
        trace=tmp_path / "trace.jsonl",
    )
    assert result and result.passed
    assert result.verdict
    assert simverbs.read_trace(tmp_path / "trace.jsonl").count("completion") > 0


def test_a_scenario_that_fails_says_why(tmp_path: Path) -> None:
    (tmp_path / "false.yaml").write_text(
        "faults: [{name: cut, action: link_down, link: h0-s0}]\nexpect: {fired: {cut: 2}}\n"
    )
    result = simverbs.run_scenario(tmp_path / "false.yaml")
    assert not result
    assert "firings of cut: 2" in result.report
    with pytest.raises(simverbs.Error, match="wrong.yaml:1") as caught:
        (tmp_path / "wrong.yaml").write_text("fnord: 1\n")
        simverbs.run_scenario(tmp_path / "wrong.yaml")
    assert caught.value.errno == errno.EINVAL


def test_a_command_that_cannot_be_run_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "simverbs").write_text("no program")
    monkeypatch.setattr("simverbs.library.COMMAND", str(tmp_path / "simverbs"))
    with pytest.raises(simverbs.Error, match=f"{tmp_path}/simverbs: Permission denied") as caught:
        simverbs.explain_trace("x")
    assert caught.value.errno == errno.EACCES


def test_without_the_command_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simverbs.library.COMMAND", "nowhere/simverbs")
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(simverbs.Error, match="nor in PATH") as caught:
        simverbs.explain_trace("x")
    assert caught.value.errno == errno.ENOENT
