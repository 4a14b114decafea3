"""The text of `simverbs COMMAND --help`, taken apart."""

import dataclasses
import functools
import re
import subprocess

COLUMN = 26  # of what is said of a word: kColumn of simverbs/cli/help.cpp
INDENT = 2


@dataclasses.dataclass
class Entry:
    term: str  # "-n,--seeds N"
    text: str

    @property
    def names(self):
        """"-n" and "--seeds"; of a word that is no option, the word."""
        return self.term.split()[0].split(",")


@dataclasses.dataclass
class Help:
    description: str
    usage: str
    sections: dict  # "Options" to its entries
    statuses: list  # of Entry
    example: str  # the commands at the end
    footer: str  # what else stands behind the sections

    @property
    def commands(self):
        return [entry.term for entry in self.sections.get("Subcommands", [])]


def entries_of(lines):
    entries = []
    for line in lines:
        starts = line[:INDENT].isspace() and line[INDENT : INDENT + 1].strip()
        if not starts:  # goes on in the column of texts
            entries[-1].text = f"{entries[-1].text} {line.strip()}".strip()
        elif line[COLUMN - INDENT : COLUMN].isspace() and len(line) > COLUMN:
            entries.append(Entry(line[:COLUMN].strip(), line[COLUMN:].strip()))
        else:
            entries.append(Entry(line.strip(), ""))
    return entries


@functools.lru_cache(maxsize=None)
def _read(program, words):
    text = subprocess.run(
        [program, *words, "--help"], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    head, _, rest = text.partition("\nUsage: ")
    usage, _, rest = rest.partition("\n")
    sections, statuses, example, footer = {}, [], "", []
    for block in rest.strip("\n").split("\n\n"):
        lines = block.split("\n")
        if lines[0].startswith("Exit status"):
            for line in lines[1:]:
                status, _, meaning = line.strip().partition(" ")
                statuses.append(Entry(status, meaning.strip()))
        elif lines[0] == "Example:":
            example = "\n".join(line[INDENT:] for line in lines[1:])
        elif re.fullmatch("Options|Positionals|Subcommands", lines[0].rstrip(":")):
            sections[lines[0].rstrip(":")] = entries_of(lines[1:])
        else:
            footer.append(block)
    return Help(" ".join(head.split()), usage, sections, statuses, example,
                "\n\n".join(footer))


def read(program, words):
    return _read(program, tuple(words))


def all_commands(program, words=()):
    """Each command as its words: (), ("run",), ..., ("fabric", "link"), ..."""
    yield tuple(words)
    for name in read(program, words).commands:
        yield from all_commands(program, (*words, name))
