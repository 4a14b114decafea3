"""Reports of tests that fail: why, what is kept, and how to run them again."""

from __future__ import annotations

import re
import subprocess

import pytest
from user_tests import CUT, HEAD, LOST, forget_settings, run


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_settings(monkeypatch)


def test_a_failing_test_shows_why_and_what_it_kept(pytester: pytest.Pytester) -> None:
    result = run(pytester, test_it=LOST + CUT)
    result.assert_outcomes(passed=1, failed=1)
    folder = pytester.path / "simverbs-failures" / "test_it.py_test_cut_small_one"
    result.stdout.fnmatch_lines(
        [
            "*- simverbs -*",
            "*request 0 of h0 QP 0x10001 completed with RETRY_EXC_ERR*",
            '*Root: the injected fault "cut" (drop) fired at 0ps: at h0, SEND_ONLY*',
            "faults:",
            '*1 "cut" (drop): fired 3 times, 3 matched',
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


@pytest.mark.parametrize(
    ("option", "files"),
    [("trace", {"trace.jsonl", "ladder.svg", "explanation.txt"}), ("none", {"explanation.txt"})],
)
def test_less_is_recorded_when_asked(
    pytester: pytest.Pytester, option: str, files: set[str]
) -> None:
    run(pytester, f"--simverbs-record={option}", "--simverbs-folder=kept", test_it=CUT)
    assert {each.name for each in (pytester.path / "kept").glob("*/*")} == files


def test_files_of_the_environment_are_named(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMVERBS_TRACE", str(pytester.path / "of_world_%n.jsonl"))
    result = run(pytester, test_it=LOST + CUT)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*capture.pcapng", "SIMVERBS_TRACE has a file: *world_%n.jsonl"])
    assert (pytester.path / "of_world_2.jsonl").exists()


def test_a_folder_that_cannot_be_made_hides_no_failure(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--simverbs-folder=/dev/null/x", test_it=CUT + LOST)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*RETRY_EXC_ERR*", "nothing is kept in /dev/null/x/*: *Not a directory*", "run it again:"]
    )


def test_without_the_command_there_is_no_ladder(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    head = 'import simverbs.library\nsimverbs.library.COMMAND = "nowhere/simverbs"\n'
    result = run(pytester, test_it=head + CUT)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*trace.jsonl", "ladder.svg was not drawn: *nor in PATH*"])


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

@pytest.mark.simverbs(scenario="good.yaml")
def test_fails_itself():
    1 / 0

@pytest.mark.xfail(strict=True)
@pytest.mark.simverbs(scenario="false.yaml")
@pytest.mark.parametrize("fails", [False, True])
def test_fails_as_it_should(fails):
    exchange(*pair())
    assert not fails
""",
    )
    result.assert_outcomes(passed=1, failed=2, xfailed=2)
    result.stdout.fnmatch_lines(
        [
            "not as the scenario expects: the report is below",
            "*expected: firings of lost: 2*",
            "kept in *test_it.py_test_otherwise:",
            "*ZeroDivisionError*",
            "*expected: firings of lost: 1*",
        ]
    )
    assert len(list((pytester.path / "simverbs-failures").iterdir())) == 2


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
