#!/usr/bin/python3
"""exchanges.py SIMVERBS DEPTH [SERVICE...]: explores exchanges of 1 to 8 messages of 1 to 4
packets, of every opcode of a service, with a receive queue and with a shared one. DEPTH 1 tries
each fault at each packet, DEPTH 2 pairs of faults, too. Prints a row for each exchange, with the
seconds of processor time that it took, and their sums for each service; fails if any has a
finding."""

import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile

MTU = 1024
STEP = 4096  # between messages in memory
ADDED = 5

OPCODES = {
    "RC": ("send", "send imm", "write", "write imm", "read", "compare_and_swap", "fetch_and_add"),
    "XRC": ("send", "write imm", "read", "fetch_and_add"),
    "UC": ("send", "write", "write imm"),
    "UD": ("send", "send imm"),
}
ATOMICS = ("compare_and_swap", "fetch_and_add")


def request(opcode, messages, length):
    """The operation that posts the requests, as a mapping in a line."""
    name, _, imm = opcode.partition(" ")
    keys = {"qp": "c", "count": messages}
    if name == "fetch_and_add":
        keys.update(to=512, add=ADDED)
    elif name == "compare_and_swap":
        keys.update(to=512, expected=0, replacement=ADDED)
    elif name == "read":
        keys.update(length=length, remote_memory="data", step=STEP)
    else:
        keys.update(length=length, memory="data", step=STEP)
    if imm:
        keys["imm"] = 7
    words = ", ".join(f"{key}: {value}" for key, value in keys.items())
    return f"- {name}: {{{words}}}"


def takes_receives(opcode):
    return opcode.startswith("send") or opcode.endswith("imm")


def expected(opcode, messages, length):
    """What the memories hold at the end."""
    if opcode in ATOMICS:
        word = ADDED * (messages if opcode == "fetch_and_add" else 1)
        return f"{{host: h1, at: 512, word: {word}}}"
    host = "h0" if opcode == "read" else "h1"
    return f"{{host: {host}, length: {length}, pattern: 3}}"


def scenario(service, opcode, messages, packets, shared):
    length = (packets - 1) * MTU + MTU // 2
    receives = takes_receives(opcode)
    lands_ahead = 40 if service == "UD" else 0  # the GRH
    ends = ", ends: {h1: {srq: s}}" if shared and service != "XRC" else ""
    queue = "srq: s" if shared and service != "XRC" else "srq: c" if service == "XRC" else "qp: c"
    text = f"connections: {{c: {{between: [h0, h1], type: {service}, timeout: 10{ends}}}}}\n"
    memory = f"{{data: {{size: {messages * STEP}, fill: 3}}}}"
    text += f"hosts:\n  h0:\n    memory: {memory}\n    do:\n"
    if receives:
        text += "      - sleep: 1us\n"
    text += f"      {request(opcode, messages, length)}\n"
    text += f"      - poll: {{qp: c, count: {messages}, status: SUCCESS}}\n"
    text += f"  h1:\n    memory: {memory}\n"
    if shared and service != "XRC":
        text += "    shared_receives: {s: {size: 16}}\n"
    if receives:
        keys = f"{queue}, count: {messages}, length: {STEP}, step: {STEP}"
        text += f"    do:\n      - receive: {{{keys}}}\n"
        text += f"      - poll: {{qp: c, count: {messages}, status: SUCCESS}}\n"
    if not lands_ahead and service in ("RC", "XRC"):
        text += f"expect: {{memory: [{expected(opcode, messages, length)}]}}\n"
    return text


def exchanges(services):
    for service in services:
        for opcode, messages, packets in itertools.product(
            OPCODES[service], (1, 2, 4, 8), (1, 2, 4)
        ):
            if packets > 1 and (opcode in ATOMICS or service == "UD"):
                continue
            yield service, opcode, messages, packets, False
            if takes_receives(opcode) and service in ("RC", "UD"):
                yield service, opcode, messages, packets, True


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def explore(simverbs, folder, depth, exchange):
    file = os.path.join(folder, "exchange.yaml")
    result = os.path.join(folder, "result.json")
    with open(file, "w", encoding="utf-8") as out:
        out.write(scenario(*exchange))
    before = processor_seconds()
    ended = subprocess.run(
        [simverbs, "explore", file, "--depth", str(depth), "--json", result, "--keep", folder],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )
    if ended.returncode not in (0, 1):
        sys.exit(f"{exchange}: status {ended.returncode}\n{ended.stdout}{scenario(*exchange)}")
    with open(result, encoding="utf-8") as file:
        found = json.load(file)
    row = {
        "exchanges": 1,
        "packets": found["packets"],
        "of one fault": found["branches_of_one"],
        "ended alike": found["same"],
        "of two": found["branches_of_two"],
        "findings": len(found["findings"]),
        "seconds": processor_seconds() - before,
    }
    if found["findings"]:
        print(ended.stdout, scenario(*exchange), sep="\n", flush=True)
    return row


def show(name, row):
    figures = ", ".join(
        f"{value:.1f} {what}" if what == "seconds" else f"{value} {what}"
        for what, value in row.items()
    )
    print(f"{name}: {figures}", flush=True)


def main(simverbs, depth, *services):
    sums = {}
    with tempfile.TemporaryDirectory() as folder:
        for exchange in exchanges(services or OPCODES):
            row = explore(simverbs, folder, int(depth), exchange)
            service, opcode, messages, packets, shared = exchange
            show(f"{service} {opcode} {messages} x {packets}{' srq' if shared else ''}", row)
            total = sums.setdefault(service, dict.fromkeys(row, 0))
            for what, value in row.items():
                total[what] += value
    for service, total in sums.items():
        show(service, total)
    sys.exit(1 if any(total["findings"] for total in sums.values()) else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
