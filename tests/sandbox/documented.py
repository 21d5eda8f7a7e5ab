# SPDX-License-Identifier: Apache-2.0
"""Commands of the documentation, run as an operator would type them."""

import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path


class DocumentedCommands:
    """Runs commands in a directory with the files that they name; a mixin."""

    def documented(self, commands, asking=(), **names):
        """Run commands by a shell; each has to be understood, and to end well.

        :param commands: as tests/documented.py gives them
        :param asking: texts of commands that ask whether to proceed
        :param names: what stands for the placeholders, such as HOST
        :return: {text of a command: what it printed on standard output}
        """
        directory = self._directory()
        printed = {}
        for command in commands:
            # One host stands for several.
            typed = re.sub(r"\[(.+?)\]", r"\1", command.text).replace("...", "")
            for name, value in names.items():
                typed = re.sub(rf"(?<![-\w]){name}", value, typed)
            line = typed
            if command.text in asking:
                # Only a terminal is asked.
                line = f"script -qec {shlex.quote(typed)} /dev/null <<< y"
            result = self.shell(line, directory)
            self.assertEqual(
                0,
                result.returncode,
                f"{command.place}: {typed}\n{result.stdout}{result.stderr}",
            )
            self.assertNotIn("Traceback", result.stderr, typed)
            self.assertNotIn("usage: ", result.stderr, typed)
            printed[command.text] = result.stdout
        return printed

    # Variables that differ from those of openrc; empty is as good as not there.
    SHELL = {}  # noqa: RUF012

    def shell(self, command, directory):
        """Run a line by a shell in the environment of openrc."""
        return subprocess.run(
            ["bash", "-c", command],
            check=False,
            capture_output=True,
            text=True,
            cwd=directory,
            env=self.client_environment() | self.SHELL,
        )

    def _directory(self):
        """Make a directory with the files that the documentation names."""
        directory = Path(tempfile.mkdtemp(prefix="perfvm-doc-"))
        self.addCleanup(shutil.rmtree, directory)
        etc = self.sandbox.layout.etc
        for name, source in (
            ("perfvm.yaml", self.sandbox.layout.policy),
            ("new.yaml", self.sandbox.layout.policy),
            ("nova.conf", etc / "nova" / "scheduler.conf"),
            ("placement.conf", etc / "placement" / "placement.conf"),
        ):
            shutil.copy(source, directory / name)
        # As the operator sets it for the policy in the directory.
        settings, made = directory / "nova.conf", str(directory / "perfvm.yaml")
        policy = str(self.sandbox.layout.policy)
        settings.write_text(settings.read_text().replace(policy, made))
        return directory
