"""play.py FOLDER RESULT [ADDRESS]: runs rdma-core's tests, which are in FOLDER, and writes what
became of each to RESULT (JSON). ADDRESS: of the host, for tests of rdma_cm, which would ask a
network interface for it."""

import json
import pathlib
import sys
import unittest

# Tests of what a driver offers besides verbs, and of memory of graphics cards.
DRIVERS = ("test_mlx5", "test_efa", "test_cuda")


class Recorder(unittest.TextTestResult):
    """Keeps one line of text for each test: "ok", "failed", or why it was skipped."""

    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, **keywords)
        self.outcomes = {}

    def addSuccess(self, test):
        super().addSuccess(test)
        self.outcomes[test.id()] = "ok"

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.outcomes[test.id()] = reason

    def addError(self, test, err):
        super().addError(test, err)
        self.outcomes[test.id()] = "failed"

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.outcomes[test.id()] = "failed"

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.outcomes[test.id()] = "failed"


def main():
    folder, result = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    address = sys.argv[3] if len(sys.argv) > 3 else None
    del sys.argv[1:]
    sys.path[:0] = [str(folder), str(folder / "tests")]
    from args_parser import parser

    parser.parse_args()
    from tests import base

    if address:
        base.RDMATestCase._get_ip_mac = lambda self, device, port, index: self.args.append(
            [device, port, index, address, None]
        )
    modules = sorted(path.stem for path in (folder / "tests").glob("test_*.py"))
    suite = unittest.defaultTestLoader.loadTestsFromNames(
        f"tests.{module}" for module in modules if not module.startswith(DRIVERS)
    )
    played = unittest.TextTestRunner(resultclass=Recorder, verbosity=2).run(suite)
    result.write_text(json.dumps(played.outcomes, indent=1))


if __name__ == "__main__":
    main()
