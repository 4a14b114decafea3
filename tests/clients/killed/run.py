"""run.py SIMVERBS SERVER CLIENT KILLS: runs clients of one server, up to a hundred at a time, until
KILLS of them have been killed at random moments. The others must be served. Afterwards neither the
server nor the world may have any object of the clients left."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

HOSTS = ("h0", "h1")
ADDRESS = "127.77.0.0"
PORT = "7471"
AT_ONCE = 100


class World:
    def __init__(self, simverbs, name):
        self.simverbs = simverbs
        self.name = name
        self.process = subprocess.Popen([simverbs, "up", "--foreground", "--world", name, "pair"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        while self.call("status").returncode != 0:
            time.sleep(0.05)

    def call(self, command, *words):
        return subprocess.run([self.simverbs, command, "--world", self.name, *words], check=False,
                              capture_output=True, text=True)

    def start(self, host, words, **options):
        return subprocess.Popen([self.simverbs, "on", "--world", self.name, host, *words],
                                stdin=subprocess.DEVNULL, **options)

    def objects(self, host, kind):
        """Returns the objects of a host as NETLINK_RDMA lists them."""
        answer = self.call("on", host, "rdma", "-j", "resource", "show", kind)
        answer.check_returncode()
        return json.loads(answer.stdout or "[]")

    def left_of_server(self):
        """Returns the ids and queue pairs of h0 once it has one id, or after 30 s: its program takes
        the ends of connections one after another."""
        for _ in range(300):
            ids, pairs = self.objects("h0", "cm_id"), self.objects("h0", "qp")
            if len(ids) == 1 and not pairs:
                break
            time.sleep(0.1)
        return ids, pairs

    def descriptors(self, program):
        """Returns how many the world has besides those that watch threads of `program`, which it
        opens when it first has to know whether one sleeps."""
        folder = f"/proc/{self.process.pid}/fd"
        count = 0
        for number in os.listdir(folder):
            try:
                count += not os.readlink(f"{folder}/{number}").startswith(f"/proc/{program.pid}/")
            except FileNotFoundError:
                pass  # closed since
        return count

    def settled_descriptors(self, program):
        """Returns the lowest number within 3 s: the end of a process is noticed a moment later."""
        lowest = self.descriptors(program)
        for _ in range(30):
            time.sleep(0.1)
            lowest = min(lowest, self.descriptors(program))
        return lowest

    def memory(self):
        """Returns the resident memory of the server of the world, in KiB."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))

    def down(self):
        self.process.terminate()
        self.process.wait()


class Clients:
    def __init__(self, world, program, kills):
        self.world = world
        self.program = program
        self.left = kills
        self.chance = random.Random(1)
        self.running = []
        self.served = 0
        self.killed = 0

    def begin(self):
        count = self.chance.randint(1, 20)
        words = [self.program, ADDRESS, PORT, str(count)]
        if self.chance.random() < 0.8:
            words += [str(self.chance.randint(0, count + 2)), str(self.chance.randint(0, 2000))]
        self.running.append(self.world.start("h1", words, stdout=subprocess.DEVNULL,
                                             stderr=subprocess.PIPE, text=True))

    def look(self):
        """Takes the clients that have ended."""
        going_on = []
        for process in self.running:
            if process.poll() is None:
                going_on.append(process)
                continue
            error = process.stderr.read()
            process.stderr.close()
            if process.returncode == 0:
                self.served += 1
            elif process.returncode == -signal.SIGKILL:
                self.killed += 1
                self.left -= 1
            else:
                raise SystemExit(f"FAILED: a client ended with {process.returncode}: {error}")
        self.running = going_on

    def run(self):
        while self.left > 0 or self.running:
            while len(self.running) < min(self.left, AT_ONCE):
                self.begin()
            self.look()
            time.sleep(0.005)


def expect(holds, what):
    if not holds:
        raise SystemExit(f"FAILED: {what}")


def check(world, server_program, client_program, kills):
    with tempfile.TemporaryFile("w+") as output:
        server = world.start("h0", [server_program, ADDRESS, PORT], stdout=output)
        while output.seek(0) or "listening" not in output.read():
            time.sleep(0.05)
        # The first clients create what stays: the server's device, memory pools, tables that grow.
        first = Clients(world, client_program, kills // 5)
        first.run()
        descriptors, memory = world.settled_descriptors(server), world.memory()
        clients = Clients(world, client_program, kills - kills // 5)
        clients.run()
        ids, pairs = world.left_of_server()
        expect([one["state"] for one in ids] == ["LISTEN"], f"h0 has ids: {ids}")
        expect(not pairs, f"h0 has queue pairs: {pairs}")
        for kind in ("cm_id", "qp", "cq", "mr", "pd"):
            left = world.objects("h1", kind)
            expect(not left, f"h1 has a {kind}: {left}")
        left = world.settled_descriptors(server)
        expect(left <= descriptors, f"{left} descriptors; {descriptors} after the first fifth")
        server.terminate()
        status = server.wait()
        output.seek(0)
        words = output.read().splitlines()[-1]
        expect(status == 0, f"the server ended with {status}: {words}")
        print(f"{first.served + clients.served} clients served, "
              f"{first.killed + clients.killed} killed; the server: {words}; memory of the world "
              f"{memory} KiB after the first fifth, {world.memory()} KiB at the end")


def main():
    simverbs, server, client, kills = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        world = World(simverbs, os.path.join(folder, "world.sock"))
        try:
            check(world, server, client, int(kills))
        finally:
            world.down()


main()
