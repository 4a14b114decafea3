#!/usr/bin/python3
"""Makes a shell script of the commands in a file for continuous integration.

    ci_steps.py github-actions.yml|gitlab-ci.yml|Containerfile|devcontainer.json

Commands run in order and stop at the first failure, except those that the service always runs. The
script exits with 1 if a command failed. Steps that only the service can do (actions, uploads) are
left out."""

import json
import pathlib
import shlex
import sys

import yaml

PRELUDE = """
status=0
step() {
    [ "$status" -eq 0 ] || [ "$1" = always ] || return 0
    echo "== $2"
    bash -euo pipefail -c "$2" || status=1
}
"""


def of_github(text):
    (job,) = yaml.safe_load(text)["jobs"].values()
    for step in job["steps"]:
        if "run" in step:
            yield ("always" if step.get("if") == "always()" else "", step["run"])


def of_gitlab(text):
    job = yaml.safe_load(text)["verbs"]
    yield from (("", command) for command in job["script"])
    yield from (("always", command) for command in job["after_script"])


def of_containerfile(text):
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "COPY":
            yield "", f"cp {rest}"
        elif word == "RUN":
            yield "", rest
        elif word not in ("", "#", "FROM", "ARG"):
            raise ValueError(f"{word}: what does the test do with it?")


def of_devcontainer(text):
    yield "", json.loads(text)["postCreateCommand"]


KINDS = {
    "github-actions.yml": of_github,
    "gitlab-ci.yml": of_gitlab,
    "Containerfile": of_containerfile,
    "devcontainer.json": of_devcontainer,
}

path = pathlib.Path(sys.argv[1])
commands = list(KINDS[path.name](path.read_text(encoding="utf-8")))
print(PRELUDE)
for when, command in commands:
    print("step", shlex.quote(when), shlex.quote(command.strip()))
print('exit "$status"')
