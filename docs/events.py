"""The kinds of trace records, read from the structs of events in the sources."""

import dataclasses
import pathlib
import re

STRUCT = re.compile(
    r"(?P<comment>(?:^//[^\n]*\n)*)^struct (?P<struct>\w+) \{\n"
    r"    static constexpr (?:\w+::)*EventInfo kInfo\{\s*\"(?P<name>\w+)\",\s*"
    r"(?:\w+::)*Category::k(?P<category>\w+)\};(?P<body>.*?)^\};",
    re.MULTILINE | re.DOTALL,
)
FOLDERS = ("fabric", "simverbs")


@dataclasses.dataclass
class Kind:
    name: str
    fields: dict  # name to what the source says of it
    comment: str
    file: str


def read(root):
    """Category, as in files, to its kinds by name."""
    found = {}
    for folder in FOLDERS:
        for path in sorted(pathlib.Path(root, folder).rglob("*.hpp")):
            for match in STRUCT.finditer(path.read_text(encoding="utf-8")):
                category = re.sub("(?<!^)([A-Z])", r"_\1", match["category"]).lower()
                comment = " ".join(line.strip("/ ") for line in match["comment"].splitlines())
                said = dict(re.findall(r"\b(\w+)(?: = \w+)?; +// (.*)", match["body"]))
                fields = {
                    name: "" if "::" in said.get(member, "") else said.get(member, "")
                    for name, member in re.findall(r"\bf\(\"(\w+)\", (\w+)", match["body"])
                }
                found.setdefault(category, []).append(
                    Kind(match["name"], fields, comment, str(path))
                )
    return {
        category: sorted(kinds, key=lambda kind: kind.name)
        for category, kinds in sorted(found.items())
    }
