"""Tests the message about programs that find no simulated device: their name, the reason, a remedy.

    SIMVERBS=build/dev/bin/simverbs ... python3 unreachable.py Unreachable     (as commands.py)
"""

import os
import shutil
import subprocess
import unittest

import operators
from commands import LIBRARIES

NOBODY = 65534
COUNTS = """
#include <infiniband/verbs.h>
#include <stdio.h>
int main(void) {
    int count = -1;
    ibv_get_device_list(&count);
    printf("%d devices\\n", count);
    return 0;
}
"""


class Unreachable(operators.World):
    """Has a world, `w`, and its folder for programs."""

    def setUp(self):
        super().setUp()
        self.up()

    def says(self, why, *words, starts=True):
        """The line of `on` and of `run`, for a program that finds no device."""
        status, text = self.on("h0", *words)
        self.assertRegex(text, f"(?m)^simverbs: {why}")
        if starts:
            self.assertNotIn("simverbs0", text)
            self.assertNotIn("1 devices", text)
        text = self.simverbs("run", "pair", "h0=" + " ".join(words), "h1=" + " ".join(words))[1]
        self.assertEqual(len([line for line in text.splitlines()
                              if "finds no simulated device" in line]), 1, text)

    def says_nothing(self, *words):
        status, text = self.on("h0", *words)
        self.assertNotIn("finds no simulated device", text)
        return text

    def copied(self, program, mode=0o755, owner=(-1, -1)):
        path = os.path.join(self.folder, os.path.basename(program))
        shutil.copy(program, path)
        os.chown(path, *owner)
        os.chmod(path, mode)
        os.chmod(self.folder, 0o711)  # for who has another user's rights
        return path

    def compiled(self, *options):
        source = self.write("counts.c", COUNTS)
        program = f"{self.folder}/counts"
        subprocess.run(["cc", source, "-o", program, "-libverbs", *options], check=True)
        return program

    def may_change_users(self):
        if os.getuid() != 0 or os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest("needs root, and a folder where set-user-ID counts")

    def test_a_program_that_is_set_user_id(self):
        self.may_change_users()
        program = self.copied("/usr/bin/ibv_devices", 0o4755, (NOBODY, -1))
        self.says(f"{program} is set-user-ID, so the loader ignores LD_LIBRARY_PATH", program)
        program = self.copied("/usr/bin/ibv_devices", 0o2755, (0, NOBODY))
        self.says(f"{program} is set-group-ID, so the loader ignores", program)

    def test_a_set_user_id_program_of_ones_own_is_as_any_other(self):
        program = self.copied("/usr/bin/ibv_devices", 0o6755, (os.getuid(), os.getgid()))
        self.assertIn("simverbs0", self.says_nothing(program))
        self.may_change_users()  # without the right to execute, the bit means another thing
        program = self.copied("/usr/bin/ibv_devices", 0o2745, (0, NOBODY))
        self.assertIn("simverbs0", self.says_nothing(program))

    def test_a_set_user_id_program_of_root(self):
        if os.getuid() == 0:
            self.says_nothing("/usr/bin/su", "--version")
        else:
            self.says("/usr/bin/su is set-user-ID", "/usr/bin/su", "--version")

    def test_a_program_with_file_capabilities(self):
        self.may_change_users()
        program = self.copied("/usr/bin/ibv_devices")
        # Version 2: permitted CAP_NET_RAW, effective.
        os.setxattr(program, "security.capability",
                    bytes.fromhex("0100000200200000000000000000000000000000"))
        self.assertIn("simverbs0", self.says_nothing(program))  # root gains nothing by it

    def test_a_static_program(self):
        self.says("/sbin/ldconfig is statically linked, so it does not load libibverbs.so.1",
                  "/sbin/ldconfig", "--version")

    def test_a_32_bit_program(self):
        program = self.write("old", "")
        with open(program, "wb") as file:
            file.write(b"\x7fELF\x01\x01\x01" + bytes(57))
        os.chmod(program, 0o755)
        self.says(f"{program} is a 32-bit program", program)

    def test_a_program_with_an_rpath_to_another_library(self):
        other = f"{self.folder}/other"
        os.mkdir(other)
        shutil.copy("/usr/lib/x86_64-linux-gnu/libibverbs.so.1", other)
        old = "-Wl,--disable-new-dtags"
        for path in (other, "$ORIGIN/other", f"/nowhere:{other}:{LIBRARIES}"):
            program = self.compiled(old, f"-Wl,-rpath,{path}")
            self.says(f"{program} has a DT_RPATH, by which the loader takes "
                      f"{other}/libibverbs.so.1 before", program)
        for options in ([old, f"-Wl,-rpath,{LIBRARIES}:{other}"], [f"-Wl,-rpath,{other}"],
                        [old, "-Wl,-rpath,/nowhere"]):
            self.assertIn("1 devices", self.says_nothing(self.compiled(*options)))

    def test_the_interpreter_of_a_script(self):
        script = self.write("script", "#! /sbin/ldconfig --version\n")
        os.chmod(script, 0o755)
        self.says("/sbin/ldconfig is statically linked", script)
        self.environment["PATH"] += ":/sbin"
        script = self.write("script", "#!/usr/bin/env ldconfig\n")
        self.says(".*/ldconfig is statically linked", script)

    def test_the_first_word_of_a_shell_command(self):
        for command in ("/sbin/ldconfig --version", "A=1 exec /sbin/ldconfig --version",
                        "/sbin/ldconfig --version | cat"):
            self.assertIn("statically linked", self.on("h0", "sh", "-c", command)[1], command)
        for command in ("\"/sbin/ldconfig\" --version", "$PROGRAM /sbin/ldconfig",
                        "if true; then /sbin/ldconfig --version; fi", "", "A=1"):
            self.says_nothing("sh", "-c", command)

    def test_what_cannot_be_looked_at(self):
        unknown = self.write("unknown", "true\n")  # of no interpreter: execvp takes the shell
        os.chmod(unknown, 0o755)
        for words in (["nowhere-to-be-found"], ["/nowhere"], [self.folder], [unknown], [""],
                      ["/lib64/ld-linux-x86-64.so.2", "/usr/bin/ibv_devices"]):
            self.says_nothing(*words)
        self.assertIn("simverbs0", self.says_nothing("ibv_devices"))


if __name__ == "__main__":
    unittest.main()
