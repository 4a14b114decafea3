"""Tests the findings of `simverbs doctor` on machines that are simulated by limits, system call
filters, variables and mounts.

    SIMVERBS=build/dev/bin/simverbs ... python3 doctor.py Doctor     (as commands.py)
"""

import ctypes
import json
import os
import platform
import resource
import shutil
import struct
import subprocess
import unittest

import operators
from commands import LIBRARIES, PATIENCE_S, SIMVERBS

REAL_VERBS = f"/lib/{platform.machine()}-linux-gnu/libibverbs.so.1"
# Numbers of system calls, x86-64.
CALLS = {"process_vm_readv": 310, "memfd_create": 319, "pidfd_open": 434, "personality": 135}


def refuse(number):
    """Lets a system call of this process, and of those that it starts, fail with EPERM."""
    load, jump_if_equal, give = 0x20, 0x15, 0x06
    errno, allow = 0x00050001, 0x7FFF0000  # SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW
    program = b"".join(
        struct.pack("HBBI", *each)
        for each in ((load, 0, 0, 0), (jump_if_equal, 0, 1, number), (give, 0, 0, errno),
                     (give, 0, 0, allow))
    )
    code = ctypes.create_string_buffer(program)
    filters = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, with_filter = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(set_seccomp, with_filter, filters):
        raise OSError(ctypes.get_errno(), "seccomp")


class Doctor(operators.World):
    def setUp(self):
        super().setUp()
        for name in ("LD_LIBRARY_PATH", "LD_PRELOAD"):
            self.environment.pop(name, None)

    def findings(self, *words, before=None, command=(SIMVERBS,)):
        """The exit status, and what --json says by check."""
        ended = subprocess.run([*command, "doctor", "--json", *words], env=self.environment,
                               capture_output=True, text=True, timeout=PATIENCE_S,
                               preexec_fn=before, check=False)
        told = json.loads(ended.stdout)
        self.assertEqual(ended.returncode, 0 if told["usable"] else 1, ended.stdout)
        return ended.returncode, {each["check"]: each for each in told["checks"]}

    def finds(self, check, result, found, *words, **how):
        """The finding of one check, which alone decides the exit status."""
        usual = self.usual()
        status, findings = self.findings(*words, **how)
        finding = findings[check]
        self.assertEqual(finding["result"], result, finding)
        self.assertRegex(finding["found"], found)
        self.assertEqual(status, 1 if result == "problem" or usual else 0, findings)
        if result != "ok" and check != "program":
            self.assertTrue(finding["consequence"] and finding["advice"], finding)
        return finding

    def usual(self):
        """What is a problem of the machine that runs the test."""
        kept, self.environment = self.environment, dict(os.environ, XDG_RUNTIME_DIR=self.folder)
        for name in [name for name in self.environment if name.startswith(("SIMVERBS_", "LD_"))]:
            del self.environment[name]
        problems = [each for each in self.findings()[1].values() if each["result"] == "problem"]
        self.environment = kept
        return problems

    def test_a_program_finds_devices_here(self):
        self.finds("devices", "ok", "^a program finds 2 in a world of its own$")
        self.finds("libraries", "ok", f"version .* in {LIBRARIES}")

    def test_in_words(self):
        self.environment["SIMVERBS_SEED"] = "x"
        status, text = self.simverbs("doctor")
        self.assertEqual(status, 1)
        self.assertRegex(text, r"(?m)^problem +settings +SIMVERBS_SEED='x' is not a number.*\n"
                               r" +so: programs with .*\n +do: correct it")
        self.assertRegex(text, r"problems? prevents? the use of simverbs\.\n$")
        del self.environment["SIMVERBS_SEED"]
        if not self.usual():
            self.assertTrue(self.simverbs("doctor")[1].endswith(
                "Nothing prevents the use of simverbs.\n"))

    @unittest.skipUnless(platform.machine() == "x86_64", "numbers of system calls")
    def test_system_calls_that_a_container_refuses(self):
        refused = "is refused: Operation not permitted .*a seccomp filter is in force"
        for call, check, result in (("process_vm_readv", "process memory", "note"),
                                    ("memfd_create", "shared memory", "problem"),
                                    ("pidfd_open", "process handles", "problem"),
                                    ("personality", "fixed addresses", "note")):
            self.finds(check, "ok", " works")
            self.finds(check, result, f"{call}.* {refused}", before=lambda: refuse(CALLS[call]))

    def test_limits(self):
        def limit(what, value):
            return lambda: resource.setrlimit(what, (value, value))
        self.finds("open files", "ok", "is 1024", before=limit(resource.RLIMIT_NOFILE, 1024))
        few = self.finds("open files", "note", "is 62", before=limit(resource.RLIMIT_NOFILE, 62))
        self.assertIn("about 8 attached", few["consequence"])
        self.finds("open files", "problem", "is 16", before=limit(resource.RLIMIT_NOFILE, 16))
        locked = limit(resource.RLIMIT_MEMLOCK, 65536)
        self.finds("locked memory", "ok", "is 64 KiB; simverbs counts it with", before=locked)
        self.environment["SIMVERBS_MEMLOCK"] = "rlimit"
        self.finds("locked memory", "note", "is 64 KiB$", before=locked)

    def test_one_processor(self):
        one = {min(os.sched_getaffinity(0))}
        self.finds("processors", "note", "^1 processor ",
                   before=lambda: os.sched_setaffinity(0, one))

    def test_another_verbs_library(self):
        other = f"{self.folder}/other"
        os.mkdir(other)
        shutil.copy(REAL_VERBS, f"{other}/libibverbs.so.1")
        self.finds("libibverbs.so.1", "ok", "simverbs exec, run and on")
        self.environment["LD_LIBRARY_PATH"] = f"/nowhere:{other}:{LIBRARIES}"
        self.finds("libibverbs.so.1", "note", f"LD_LIBRARY_PATH has {other}/libibverbs")
        self.environment["LD_LIBRARY_PATH"] = f"{LIBRARIES}:{other}"
        self.finds("libibverbs.so.1", "ok", "that of simverbs first")

    def test_libraries_that_are_preloaded(self):
        self.finds("LD_PRELOAD", "ok", "^not set$")
        self.environment["LD_PRELOAD"] = REAL_VERBS
        self.finds("LD_PRELOAD", "problem", REAL_VERBS)
        self.environment["LD_PRELOAD"] = "/nowhere/x.so"
        self.finds("LD_PRELOAD", "note", "/nowhere/x.so: no such file")

    def test_parts_that_are_missing(self):
        alone = f"{self.folder}/bin/simverbs"
        os.mkdir(os.path.dirname(alone))
        try:
            os.link(SIMVERBS, alone)
        except OSError:
            shutil.copy(SIMVERBS, alone)
        self.finds("libraries", "problem", "libibverbs.so.1 of simverbs is not beside",
                   command=(alone,))

    def test_folders(self):
        self.finds("runtime folder", "ok", f"worlds are in {self.folder}/simverbs")
        os.mkdir(f"{self.folder}/simverbs", 0o755)
        os.chmod(f"{self.folder}/simverbs", 0o755)
        self.finds("runtime folder", "problem", "is open to other users")
        os.rmdir(f"{self.folder}/simverbs")
        self.environment["XDG_RUNTIME_DIR"] = "/nonexistent"
        self.finds("runtime folder", "note", "'/nonexistent' is no folder of this user")
        self.environment["TMPDIR"] = "/proc"
        self.finds("temporary files", "problem", "no temporary folder can be made in '/proc'")

    def test_small_shared_memory(self):
        small = ["unshare", "-m", "sh", "-c",
                 "mount -t tmpfs -o size=1m none /dev/shm && exec \"$@\"", "sh"]
        if subprocess.run([*small, "true"], capture_output=True, check=False).returncode:
            self.skipTest("needs a mount namespace of its own")
        self.finds("/dev/shm", "note", "^1 MiB, ", command=(*small, SIMVERBS))

    def test_variables(self):
        self.environment["SIMVERBS_SEDE"] = "7"
        self.finds("settings", "note", "SIMVERBS_SEDE is no setting: did you mean")
        self.environment["SIMVERBS_TOPOLOGY"] = "./nosuch.yaml"
        self.finds("settings", "problem", "SIMVERBS_TOPOLOGY='./nosuch.yaml': .*No such file")

    def test_programs(self):
        self.finds("program", "ok", "nothing keeps ibv_devinfo from", "--", "ibv_devinfo", "-v")
        self.finds("program", "problem", "statically linked", "--", "/sbin/ldconfig")
        self.environment["PATH"] = self.folder
        self.finds("programs", "note", "^no dot, no cc$")


if __name__ == "__main__":
    unittest.main()
