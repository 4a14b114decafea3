"""Errors of the package."""

from __future__ import annotations

import errno
import os


class Error(OSError):
    """Raised for what simverbs refuses.

    `errno` is that of the C API, `strerror` says what was wrong, where, and what would be valid.
    """

    def __init__(self, number: int, message: str) -> None:
        super().__init__(number, message or os.strerror(number))

    def __str__(self) -> str:
        name = errno.errorcode.get(self.errno or 0, str(self.errno))
        return f"{self.strerror} ({name})"


class ScenarioFailed(AssertionError):
    """Raised where a run was not as its scenario expects. Its text is the report."""
