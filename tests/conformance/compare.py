"""compare.py DIFFERENCES MEASURED OURS [--all]: compares the answers of simverbs (OURS) with those
of a real implementation (MEASURED). Both files have one JSON object for each probe.

Passes if every difference has a row in the tables of DIFFERENCES (a Markdown file), every row has a
difference, and the counts that the file states are right. A row with the probe `*` ignores an
answer in all probes. Prints differences without a row; with --all every difference.

A difference has a probe, the place of the answer, our answer and theirs. Completions are named by
their wr_id: wcA.1.st. `wcA.1` alone is a completion that only one side has, `wcA.order` compares
the order of those that both have. If a completion has the same status on both sides, the place of
its other fields names its kind, which says what programs may rely on: .failed. for failed ones,
.sent. for successful sends, .received. for receives.
"""
import collections
import fnmatch
import json
import re
import sys

MISSING = "-"
ROW = re.compile(r"^\| `")
COUNTS = re.compile(r"Of (\d+) probes (\d+) are answered alike, (\d+) but for what is put aside, "
                    r"and (\d+) otherwise")

Difference = collections.namedtuple("Difference", "probe place ours theirs")


def load(path):
    answers = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            answer = json.loads(line)
            answers[answer.pop("group") + "/" + answer.pop("probe")] = answer
    return answers


def is_completions(value):
    return isinstance(value, list) and bool(value) and \
        all(isinstance(entry, dict) and "wr" in entry for entry in value)


def text(value):
    if isinstance(value, list) and not any(isinstance(entry, (dict, list)) for entry in value):
        return " ".join(map(str, value)) or "none"
    return "there" if isinstance(value, (dict, list)) else str(value) or "none"


def named(completions):
    seen = collections.Counter()
    by_name = {}
    for completion in completions:
        number = str(completion["wr"])
        seen[number] += 1
        by_name[number if seen[number] == 1 else f"{number}#{seen[number]}"] = completion
    return by_name


def kind_of(completion):
    if completion["st"] != "SUCCESS":
        return "failed"
    return "received" if completion["op"].startswith("RECV") else "sent"


def compare_completions(place, ours, theirs):
    ours, theirs = named(ours), named(theirs)
    both = [name for name in ours if name in theirs]
    order = [name for name in theirs if name in ours]
    if both != order:
        yield place + ".order", " ".join(both), " ".join(order)
    for name in list(ours) + [name for name in theirs if name not in ours]:
        here, there = ours.get(name), theirs.get(name)
        at = f"{place}.{name}"
        if here is None or there is None:
            yield at, here["st"] if here else MISSING, there["st"] if there else MISSING
        elif here["st"] != there["st"]:
            yield at + ".st", here["st"], there["st"]
        else:
            for member in list(here) + [member for member in there if member not in here]:
                if here.get(member) != there.get(member):
                    yield (f"{at}.{kind_of(here)}.{member}", text(here.get(member, MISSING)),
                           text(there.get(member, MISSING)))


def compare(place, ours, theirs):
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in list(theirs) + [key for key in ours if key not in theirs]:
            if key.startswith("info"):
                continue
            at = f"{place}.{key}" if place else key
            if key not in ours or key not in theirs:
                present = ours.get(key, theirs.get(key))
                if is_completions(present) or present == []:
                    yield from compare_completions(at, ours.get(key, []), theirs.get(key, []))
                else:
                    yield at, text(ours.get(key, MISSING)), text(theirs.get(key, MISSING))
            else:
                yield from compare(at, ours[key], theirs[key])
    elif is_completions(ours) or is_completions(theirs):
        yield from compare_completions(place, ours, theirs)
    elif text(ours) != text(theirs):
        yield place, text(ours), text(theirs)
    elif text(ours) == "there":
        for index, (here, there) in enumerate(zip(ours, theirs)):
            yield from compare(f"{place}.{index}", here, there)


class Row:
    def __init__(self, number, line):
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        self.number = number
        self.probes, self.places = (re.findall(r"`([^`]+)`", cell) for cell in cells[:2])
        self.ours, self.theirs = (cell.replace("`", "") or "*" for cell in cells[2:4])
        self.used = set()

    def is_put_aside(self):
        return self.probes == ["*"]

    def takes(self, difference):
        probes = [probe for probe in self.probes if fnmatch.fnmatchcase(difference.probe, probe)]
        places = [place for place in self.places if fnmatch.fnmatchcase(difference.place, place)]
        if not probes or not places or not fnmatch.fnmatchcase(difference.ours, self.ours) or \
                not fnmatch.fnmatchcase(difference.theirs, self.theirs):
            return False
        self.used.update(probes, places)
        return True

    def unused(self):
        return [pattern for pattern in self.probes + self.places if pattern not in self.used]


def main():
    table, measured, ours = sys.argv[1:4]
    options = sys.argv[4:]
    theirs, answers = load(measured), load(ours)
    with open(table, encoding="utf-8") as lines:
        prose = lines.read()
    rows = [Row(number, line) for number, line in enumerate(prose.splitlines(), 1)
            if ROW.match(line)]
    problems = [f"{probe}: on one side only" for probe in theirs.keys() ^ answers.keys()]
    otherwise = aside = 0
    for probe in theirs.keys() & answers.keys():
        differences = [Difference(probe, *found)
                       for found in compare("", answers[probe], theirs[probe])]
        taken = [[row for row in rows if row.takes(difference)] for difference in differences]
        for difference, by in zip(differences, taken):
            line = f"{probe} {difference.place}: {difference.ours} here, {difference.theirs} there"
            if "--all" in options:
                print(line)
            if not by:
                problems.append(line)
        if any(not by or not any(row.is_put_aside() for row in by) for by in taken):
            otherwise += 1
        elif differences:
            aside += 1
    for row in rows:
        problems += [f"line {row.number}: nothing differs at {pattern}" for pattern in row.unused()]
    counts = (len(theirs), len(theirs) - otherwise - aside, aside, otherwise)
    stated = COUNTS.search(" ".join(prose.split()))
    if stated is None or tuple(map(int, stated.groups())) != counts:
        problems.append("the counts are: Of {} probes {} are answered alike, {} but for what is put "
                        "aside, and {} otherwise".format(*counts))
    for problem in sorted(problems):
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
