#!/usr/bin/python3
"""migrate.py FOLDER ADDRESS: migrates a running QEMU by RDMA. Starts a virtual machine, lets it run
for a moment, and migrates it to the machine that waits at ADDRESS, whose control socket is
FOLDER/to. Both then write their memory to files, which must be equal."""

import filecmp
import json
import os
import socket
import subprocess
import sys
import time

MEMORY_MIB = 64
MACHINE = ["qemu-system-x86_64", "-accel", "tcg", "-m", str(MEMORY_MIB), "-display", "none",
           "-nodefaults"]


class Control:
    """The control socket of a machine, which speaks QMP."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        while self.socket.connect_ex(path) != 0:
            time.sleep(0.1)
        self.file = self.socket.makefile("r", encoding="utf-8")
        self.file.readline()
        self.ask("qmp_capabilities")

    def ask(self, command, **arguments):
        request = {"execute": command, "arguments": arguments}
        self.socket.sendall(json.dumps(request).encode() + b"\n")
        while True:
            answer = json.loads(self.file.readline())
            if "error" in answer:
                raise SystemExit(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]


def migrate(source, address):
    source.ask("migrate", uri=f"rdma:{address}:4444")
    status = ""
    while status != "completed":
        time.sleep(0.2)
        status = source.ask("query-migrate").get("status", "")
        if status == "failed":
            raise SystemExit("the migration failed")


def main():
    folder, address = sys.argv[1:]
    with subprocess.Popen(MACHINE + ["-qmp", f"unix:{folder}/from,server,nowait"]) as machine:
        source, target = Control(f"{folder}/from"), Control(f"{folder}/to")
        time.sleep(2)  # its firmware writes to memory
        source.ask("stop")
        migrate(source, address)
        files = []
        for name, control in (("sent", source), ("arrived", target)):
            files.append(os.path.join(folder, name))
            control.ask("pmemsave", val=0, size=MEMORY_MIB << 20, filename=files[-1])
        same = filecmp.cmp(*files, shallow=False)
        moved = source.ask("query-migrate")["ram"]
        for control in (source, target):
            control.ask("quit")
        machine.wait()
    if not same or moved["normal"] == 0:
        raise SystemExit(f"memory differs, or none was moved: {moved}")
    print(f"{moved['normal']} pages: every byte as expected")


main()
