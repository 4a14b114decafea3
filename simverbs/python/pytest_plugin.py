"""A plugin of pytest: a simulated fabric for each test.

    @pytest.mark.simverbs(topology="star:3", personality="connectx6", seed=3)
    def test_of_verbs(simverbs_world):
        lost = simverbs.drop(src="h0", psn=1, attempt=1)
        ...

`pytest --simverbs` loads the simulated libibverbs.so.1 before tests are imported, so that pyverbs
has its devices. The mark has the keywords of `simverbs.World`, and `record`, as --simverbs-record.
Marks of a class or module apply to all its tests; the mark nearest to the test wins. Paths of
scenarios and topologies are relative to the file of the test. A test with the mark has a world even
if it does not ask for the fixture.

The report of a test that fails says why, in which folder trace, capture and ladder are kept, and
how to run it again.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable, Optional

import pytest

from simverbs import library
from simverbs.build_places import VERSION
from simverbs.errors import Error
from simverbs.recorded_test import RecordedTest
from simverbs.world import World

RECORDS = ("all", "trace", "none")
_recorded = pytest.StashKey[RecordedTest]()
_KEYWORDS = [*inspect.signature(World).parameters, "record"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options that begin with --simverbs."""
    group = parser.getgroup("simverbs", "RDMA verbs on simulated devices")
    group.addoption(
        "--simverbs",
        action="store_true",
        help="load the simulated libibverbs.so.1 first: pyverbs has the simulated devices",
    )
    group.addoption(
        "--simverbs-folder",
        metavar="DIR",
        default="simverbs-failures",
        help="where tests that fail leave trace, capture and ladder (default: %(default)s)",
    )
    group.addoption(
        "--simverbs-record",
        choices=RECORDS,
        default="all",
        help="what is recorded of a test: all, trace (no packets) or none (default: %(default)s)",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Loads the library before a conftest.py can import pyverbs."""
    if early_config.known_args_namespace.simverbs:
        _load()


def pytest_configure(config: pytest.Config) -> None:
    """Registers the mark."""
    config.addinivalue_line(
        "markers",
        "simverbs(topology=, personality=, seed=, scenario=, ...): the simulated fabric of the "
        "test; keywords are those of simverbs.World, and record",
    )
    if config.getoption("simverbs"):
        _load()


def pytest_report_header(config: pytest.Config) -> Optional[str]:
    """Says which library pyverbs has."""
    if not config.getoption("simverbs"):
        return None
    return f"simverbs: {VERSION}, {library.load()}"


def _load() -> None:
    try:
        library.load()
    except Error as error:
        raise pytest.UsageError(f"--simverbs: {error}") from None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Makes the world of a test with the mark before its other fixtures."""
    names: Optional[list[str]] = getattr(item, "fixturenames", None)
    if names is not None and item.get_closest_marker("simverbs") is not None:
        if "simverbs_world" in names:
            names.remove("simverbs_world")
        names.insert(0, "simverbs_world")


@pytest.fixture
def simverbs_world(request: pytest.FixtureRequest) -> Iterator[World]:
    """The simulated fabric of this test: a `simverbs.World`, as the marks `simverbs` say.

    What pyverbs has open is closed at the end of the test. The test fails where another device is
    open then, and where its scenario expects something else.
    """
    item = request.node
    settings = _settings_of(item)
    record = settings.pop("record", None) or item.config.getoption("simverbs_record")
    if record not in RECORDS:
        pytest.fail(f"mark simverbs: record: {record!r} is none of {', '.join(RECORDS)}", False)
    refused = ""
    try:
        test = RecordedTest(item, settings, record)
    except (Error, TypeError) as error:
        refused = str(error)
    if refused:  # outside of the handler: the report has no other exception then
        pytest.fail(f"simverbs_world: {refused}", pytrace=False)
    item.stash[_recorded] = test
    if "scenario" in settings:
        item.runtest = _judged(item.runtest, test)
    yield test.world
    del item.stash[_recorded]
    left = ""
    try:
        test.close()
    except Error as error:
        left = str(error.strerror)
    if left:
        pytest.fail(f"the test leaves a device open: {left}", pytrace=False)


def _settings_of(item: pytest.Item) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for mark in item.iter_markers("simverbs"):  # the nearest first
        if mark.args:
            pytest.fail(f"mark simverbs: {mark.args[0]!r} needs a keyword, as topology=...", False)
        for name, value in mark.kwargs.items():
            if name not in _KEYWORDS:
                known = ", ".join(_KEYWORDS)
                pytest.fail(f"mark simverbs: there is no {name!r}; there are {known}", False)
            settings.setdefault(name, value)
    folder = item.path.parent
    if settings.get("scenario") is not None:
        settings["scenario"] = folder / settings["scenario"]
    topology = settings.get("topology")
    if isinstance(topology, (str, Path)) and (folder / topology).is_file():
        settings["topology"] = str(folder / topology)
    return settings


def _judged(run: Callable[[], None], test: RecordedTest) -> Callable[[], None]:
    """The test, and then what its scenario expects."""

    def run_and_judge() -> None:
        __tracebackhide__ = True
        run()
        if test.judge():
            pytest.fail("not as the scenario expects: the report is below", pytrace=False)

    return run_and_judge


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Adds to the report of a test that failed why, and where its trace is."""
    outcome: Any = yield
    report: pytest.TestReport = outcome.get_result()
    test = item.stash.get(_recorded, None)
    if test is None or not report.failed or test.has_failed:
        return
    text, folder = test.keep()
    report.sections.append(("simverbs", text))
    report.user_properties.append(("simverbs_folder", str(folder)))
