"""Traces: the records of a run, one by one.

    for record in simverbs.read_trace("run.jsonl"):
        if record.name == "completion" and record["status"] != "SUCCESS":
            print(record)

A trace is a file of JSON Lines (`World.trace()`, SIMVERBS_TRACE, `simverbs run --trace`).
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

from simverbs.durations import text_of
from simverbs.errors import Error

if TYPE_CHECKING:
    import pandas

Value = Union[int, bool, str]


@dataclass(frozen=True)
class Record:
    """What happened at a node at a time."""

    time_ps: int  # virtual time since the world was made
    node: str  # "h0"; "": of the whole fabric
    category: str  # "completion", "state", "fault", "packet", ...
    name: str  # "fault_fired"
    fields: Mapping[str, Value]

    def __getitem__(self, field: str) -> Value:
        """The value of a field. Raises KeyError that names the fields of the record."""
        try:
            return self.fields[field]
        except KeyError:
            raise KeyError(
                f"{self.name} has no field {field!r}; it has {', '.join(self.fields)}"
            ) from None

    def __str__(self) -> str:
        fields = " ".join(f"{name}={value}" for name, value in self.fields.items())
        return f"{text_of(self.time_ps)} {self.node} {self.name} {fields}"


class Trace:
    """The records of a file, from `first_byte` on; read anew each time it is iterated.

    `World.trace()` gives one of the world that runs.
    """

    def __init__(self, path: Union[str, Path], first_byte: int = 0) -> None:
        self.path = Path(path)
        self._first_byte = first_byte

    def __iter__(self) -> Iterator[Record]:
        return self.records()

    def records(
        self,
        name: Optional[str] = None,
        *,
        node: Optional[str] = None,
        category: Optional[str] = None,
        **fields: Value,
    ) -> Iterator[Record]:
        """The records that have this name, node, category and values of fields; None is any.

        Raises Error: EINVAL with file and line where the file is no trace; and as `open()` does.
        """
        for record in self._read():
            if (
                name in (None, record.name)
                and node in (None, record.node)
                and category in (None, record.category)
                and all(record.fields.get(key) == value for key, value in fields.items())
            ):
                yield record

    def count(
        self,
        name: Optional[str] = None,
        *,
        node: Optional[str] = None,
        category: Optional[str] = None,
        **fields: Value,
    ) -> int:
        """How many there are of the records that `records()` gives."""
        return sum(1 for _ in self.records(name, node=node, category=category, **fields))

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame: time_ps, node, category, name, and a column for each field.

        Raises Error (ENOSYS) where pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise Error(
                errno.ENOSYS, "to_pandas: pandas is not installed (Debian: python3-pandas)"
            ) from None
        columns = ["time_ps", "node", "category", "name"]
        rows: list[dict[str, Any]] = []
        for record in self:
            row: dict[str, Any] = {
                "time_ps": record.time_ps,
                "node": record.node,
                "category": record.category,
                "name": record.name,
            }
            # A field that is called as one of these has the record's name in front.
            row.update(
                (f"{record.name}.{key}" if key in row else key, value)
                for key, value in record.fields.items()
            )
            rows.append(row)
        return pandas.DataFrame(rows, columns=None if rows else columns)

    def _limit(self) -> Optional[int]:
        """How many bytes of the file there are to be read; None: all."""
        return None

    def _read(self) -> Iterator[Record]:
        names: dict[int, str] = {}
        end = self._limit()
        try:
            file = open(self.path, "rb")
        except OSError as error:
            raise Error(error.errno or errno.EIO, f"{self.path}: {error.strerror}") from None
        with file:
            at = 0
            for number, line in enumerate(file, 1):
                begin, at = at, at + len(line)
                if end is not None and begin >= end:
                    break
                place = f"{self.path}:{number}"
                parsed = _parsed(line, place, number == 1)
                if number == 1:
                    continue
                record = _record(parsed, names, place)
                if record.name == "node":
                    names[parsed["node"]] = str(record["label"])
                if begin >= self._first_byte:
                    yield record
            if at == 0:
                raise Error(errno.EINVAL, f"{self.path}: is empty, no trace of simverbs")


def _parsed(line: bytes, place: str, is_first: bool) -> dict[str, Any]:
    try:
        parsed = json.loads(line)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict) or (is_first and parsed.get("schema") != "simverbs-trace"):
        raise Error(errno.EINVAL, f"{place}: no {'trace of simverbs' if is_first else 'record'}")
    return parsed


def _record(parsed: dict[str, Any], names: dict[int, str], place: str) -> Record:
    try:
        number = parsed["node"]
        node = "" if number is None else names.get(number, f"node {number}")
        if parsed["name"] == "node":
            node = parsed["fields"]["label"]
        return Record(parsed["time"], node, parsed["category"], parsed["name"], parsed["fields"])
    except KeyError as missing:
        raise Error(errno.EINVAL, f"{place}: a record without {missing}") from None


def read_trace(path: Union[str, Path]) -> Trace:
    """The trace in a file. Raises Error (ENOENT) where there is no such file, when it is read."""
    return Trace(path)
