#!/usr/bin/python3
"""Executes the commands of one page of the manual, and compares what they print.

    sessions.py PAGE PREFIX          runs in a new folder, with the installation at PREFIX
    sessions.py --beside PAGE PREFIX runs in a copy of the folder that contains the page
    sessions.py --count FOLDER       prints how many blocks there are, and which are not executed

A page outside the manual (README.md) uses common Markdown: `console` blocks, which may have
`status=1` after the word, and blocks that name a file.
"""

import collections
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^(?P<marks>`{3,})(?P<language>\{?[\w-]*\}?) *(?P<argument>.*)$")
OPTION = re.compile(r"^:(\w+): *(.*)$")
# Blocks in these languages hold no commands: no test would run a command in one of them.
SILENT = {"c", "cpp", "yaml", "json", "cmake", "python", "text"}
# Where a build server says that it is one, pytest does not shorten its lines.
BUILD_SERVER = ("CI", "BUILD_NUMBER")
PORT = re.compile(r"\b186\d\d\b")  # ports in commands, replaced by free ones
PATIENCE_S = 240

Block = collections.namedtuple("Block", "kind argument options lines line")


def blocks_of(path):
    """The fenced blocks of a page."""
    lines = path.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        fence = FENCE.match(lines[number])
        number += 1
        if not fence:
            continue
        begin = number
        while lines[number] != fence["marks"]:
            number += 1
        body, options = lines[begin:number], {}
        while body and fence["language"].startswith("{") and OPTION.match(body[0]):
            name, value = OPTION.match(body.pop(0)).groups()
            options[name] = value
        while body and not body[0].strip():
            body.pop(0)
        kind, argument = fence["language"].strip("{}"), fence["argument"]
        if path.name == "README.md" and kind == "console":
            kind, options = "session", dict([argument.split("=")] if argument else [])
        elif path.name == "README.md" and argument:
            kind = "file"
        yield Block(kind, argument, options, body, begin)
        number += 1


def pages_of(folder):
    return sorted(
        page for page in pathlib.Path(folder).rglob("*.md") if page.name != "README.md"
    )


def steps_of(block):
    """The commands of a session, each with the lines that it shall print."""
    steps = []
    for line in block.lines:
        if line.startswith("$ "):
            steps.append(([line[2:]], []))
        elif line.startswith("> ") and not steps[-1][1]:
            steps[-1][0].append(line[2:])
        else:
            steps[-1][1].append(line)
    return [("\n".join(command), shown) for command, shown in steps]


def pattern_of(shown):
    """`...` alone in a line stands for any lines, within a line for any text."""
    made = ""
    for line in shown:
        if line.strip() == "...":
            made += r"(?:[^\n]*\n)*?"
        else:
            made += r"[^\n]*?".join(re.escape(part) for part in line.rstrip().split("...")) + "\n"
    return re.compile(made)


def free_port(taken):
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        if port not in taken:
            return port


class Page:
    def __init__(self, path, prefix, folder, is_copied):
        self.path, self.folder, self.is_copied = path, folder, is_copied
        self.ports = {}
        self.failures = 0
        libraries = next(pathlib.Path(prefix).rglob("libsimverbs.so.0")).parent
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("SIMVERBS_")
            and name not in ("LD_LIBRARY_PATH", *BUILD_SERVER)
        }
        environment.update(
            PATH=f"{prefix}/bin:{environment['PATH']}",
            HOME=folder,
            TMPDIR=folder,
            XDG_RUNTIME_DIR=folder,
            CMAKE_PREFIX_PATH=prefix,
            PKG_CONFIG_PATH=f"{libraries}/pkgconfig",
            PYTHONPATH=f"{prefix}/lib/python3/dist-packages",
            TERM="dumb",
            LC_ALL="C.UTF-8",
        )
        self.shell = subprocess.Popen(
            ["bash"], cwd=self.make_folder(), env=environment, stdin=subprocess.PIPE, text=True
        )

    def make_folder(self):
        work = os.path.join(self.folder, "work")
        if self.is_copied:
            shutil.copytree(self.path.parent, work)
        else:
            os.mkdir(work)
        return work

    def with_free_ports(self, text):
        for port in PORT.findall(text):
            self.ports.setdefault(port, free_port(self.ports.values()))
        return PORT.sub(lambda found: self.ports[found[0]], text)

    def with_shown_ports(self, text):
        for shown, used in self.ports.items():
            text = re.sub(rf"\b{used}\b", shown, text)
        return text

    def carry_out(self, command):
        """Runs a command in the page's shell: (output, exit status)."""
        output = os.path.join(self.folder, "output")
        status = os.path.join(self.folder, "status")
        os.mkfifo(status)
        self.shell.stdin.write(
            f"{{ {self.with_free_ports(command)}\n}} >{output} 2>&1 </dev/null\n"
            f"echo $? >{status}\n"
        )
        self.shell.stdin.flush()
        with open(status, encoding="utf-8") as file:
            ended = int(file.read())
        os.remove(status)
        with open(output, encoding="utf-8", errors="replace") as file:
            return self.with_shown_ports(file.read()), ended

    def check(self, block):
        steps = steps_of(block)
        for number, (command, shown) in enumerate(steps):
            is_last = number == len(steps) - 1
            expected = int(block.options.get("status", 0)) if is_last else 0
            said, status = self.carry_out(command)
            said = "".join(line.rstrip() + "\n" for line in said.splitlines())
            if status == expected and pattern_of(shown).fullmatch(said):
                continue
            self.failures += 1
            print(f"{self.path}:{block.line}: $ {command}")
            print("-- shown:", *shown, sep="\n")
            print(f"-- printed, status {status} where {expected} is expected:", said, sep="\n")

    def run(self):
        commands = 0
        for block in blocks_of(self.path):
            if block.kind == "file":
                path = os.path.join(self.folder, "work", block.argument)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write("\n".join(block.lines) + "\n")
            elif block.kind == "session":
                commands += len(steps_of(block))
                self.check(block)
        self.shell.stdin.close()
        self.shell.wait(timeout=PATIENCE_S)
        print(f"{commands} commands of {self.path.name}, {self.failures} failed")
        return self.failures == 0


def run(page, prefix, is_copied):
    folder = tempfile.mkdtemp(prefix="manual-")
    os.chmod(folder, 0o700)
    try:
        return Page(pathlib.Path(page), os.path.abspath(prefix), folder, is_copied).run()
    finally:
        shutil.rmtree(folder)


def count(folder):
    """Every block of commands is executed, or says why not."""
    kinds, is_good = collections.Counter(), True
    for page in pages_of(folder):
        for block in blocks_of(page):
            kinds[block.kind] += 1
            place = f"{page.relative_to(folder)}:{block.line}"
            if block.kind == "not-run":
                print(f"{place}: not executed: {block.options['reason']}")
            has_commands = any(line.startswith("$ ") for line in block.lines)
            if block.kind == "session" and not has_commands:
                print(f"{place}: a session without a command")
                is_good = False
            if block.kind in SILENT and has_commands or block.kind in ("", "console", "bash", "sh"):
                print(f"{place}: a block of commands that nobody executes: session or not-run")
                is_good = False
    print(
        f"{kinds['session']} blocks of commands are executed, {kinds['not-run']} are not;"
        f" {kinds['file']} files"
    )
    return is_good and kinds["session"] > 0


if __name__ == "__main__":
    if sys.argv[1] == "--count":
        passed = count(sys.argv[2])
    else:
        passed = run(*sys.argv[-2:], is_copied=sys.argv[1] == "--beside")
    sys.exit(0 if passed else 1)
