# SPDX-License-Identifier: Apache-2.0
"""Tutorials, followed word by word in one shell on a sandbox.

``python -m tests.sandbox.tutorial DIRECTORY`` follows one in the sandbox that is up in
a directory, and writes what the commands print into the page; ``--page`` names another
one than :data:`PAGE`.
"""

import argparse
import contextlib
import fcntl
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path
from typing import NamedTuple

from tests import documented
from tests.processes.sandbox import Sandbox

PAGE = "doc/source/user/tutorial.rst"
ROOT = Path(__file__).parents[2]

_INDENT, _PROMPT = "   ", "   $ "
_CONSOLE = ".. code-block:: console"
_SHOWN_DIRECTORY = "~/.cache/nova_perfvm/sandbox"
# What differs from run to run.
_IDS = (
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\b20\d\d-\d\d-\d\dT[\d:.]+(Z|\+00:00)?"), "TIME"),
    # That of a policy differs with each key that there is.
    (re.compile(r"sha256 [0-9a-f]{8}\b"), "SHA256"),
)
# Wide, so that no program breaks its lines.
_ROWS_COLUMNS = (50, 250)


class Step(NamedTuple):
    """A command of the page.

    :ivar command: its lines, without the prompt
    :ivar output: the lines that are shown below it
    """

    command: tuple[str, ...]
    output: tuple[str, ...]

    @property
    def text(self):
        """The command as it is typed."""
        return "\n".join(self.command)

    @property
    def followed(self):
        """Whether it is run."""
        return documented.why_not("", self.text) is None


def parse(text):
    """Return a page as a list of its steps and of all other lines."""
    parts, console, typing = [], False, False
    for line in text.splitlines():
        if line.startswith(_CONSOLE):
            console = True
        elif line and not line.startswith(_INDENT):
            console = False
        if console and typing:
            parts[-1] = Step((*parts[-1].command, line.removeprefix(_INDENT)), ())
        elif console and line.startswith(_PROMPT):
            parts.append(Step((line.removeprefix(_PROMPT),), ()))
        elif console and line and isinstance(parts[-1], Step):
            step = parts[-1]
            parts[-1] = Step(step.command, (*step.output, line.removeprefix(_INDENT)))
        else:
            parts.append(line)
        typing = isinstance(parts[-1], Step) and line.endswith("\\")
    return parts


def render(parts):
    """Return the text of a page."""
    lines = []
    for part in parts:
        if isinstance(part, str):
            lines.append(part)
            continue
        first, *others = part.command
        lines.append(f"{_PROMPT}{first}")
        lines.extend(f"{_INDENT}{line}" for line in (*others, *part.output))
    return "\n".join(lines) + "\n"


def steps(page=PAGE):
    """Return the steps of a tutorial, in their order."""
    found = parse((ROOT / page).read_text())
    return [part for part in found if isinstance(part, Step)]


def comparable(lines):
    """Return what has to be the same in every run of a command."""
    text = "\n".join(line.rstrip() for line in lines)
    for pattern, word in _IDS:
        text = pattern.sub(word, text)
    return text


def follow(test, page, commands):
    """Follow a page; each command has to print what is shown.

    :param test: a tests.sandbox.base.SandboxTest
    :param commands: those that tests/documented.py gives it
    """
    test.addCleanup(_delete_servers, test)
    followed = [step for step in steps(page) if step.followed]
    test.assertEqual(len(commands), len(followed))
    with Session(test.sandbox) as session:
        for step in followed:
            test.assertEqual(
                comparable(step.output), comparable(session.run(step.text)), step.text
            )


def _delete_servers(test):
    """Delete all that there are, wherever it ended."""
    test.servers = [server.id for server in test.compute.servers()]
    test.delete_all()


class Session:
    """One shell, with a terminal, in which the commands are typed one after the other.

    Only the program that starts sandboxes is a stand-in: it says which one is meant.
    """

    def __init__(self, sandbox):
        """Start it.

        :param sandbox: one that is up
        """
        self._sandbox = sandbox
        self._closing = contextlib.ExitStack()
        made = tempfile.TemporaryDirectory(prefix="perfvm-tutorial-")
        self.directory = Path(self._closing.enter_context(made))
        self._stand_in()
        self._master, slave = pty.openpty()
        self._closing.callback(os.close, self._master)
        size = struct.pack("HHHH", *_ROWS_COLUMNS, 0, 0)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
        self._shell = subprocess.Popen(
            ["bash", "--norc"],
            stdin=subprocess.PIPE,
            stdout=slave,
            stderr=slave,
            cwd=self.directory,
            text=True,
        )
        os.close(slave)

    def __enter__(self):
        """Return it."""
        return self

    def __exit__(self, *_exc_info):
        """End the shell, and remove what it has written."""
        self._shell.stdin.close()
        self._shell.wait()
        self._closing.close()

    def run(self, command):
        """Run a command; return the lines that it printed, as the page shows them."""
        mark = f"perfvm-{os.urandom(8).hex()}"
        self._shell.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '{mark}\\n'\n")
        self._shell.stdin.flush()
        printed = b""
        while mark.encode() not in printed:
            printed += os.read(self._master, 65536)
        text = printed.decode().replace("\r\n", "\n").partition(mark)[0]
        text = text.replace(str(self._sandbox.layout.directory), _SHOWN_DIRECTORY)
        # A line of progress is overwritten by the next.
        lines = (line.rpartition("\r")[2].rstrip() for line in text.split("\n"))
        return tuple(line for line in lines if line)

    def _stand_in(self):
        program = self.directory / ".venv/bin/python"
        program.parent.mkdir(parents=True)
        words = (
            *("env", f"PYTHONPATH={ROOT}", sys.executable, '"$@"'),
            "--directory",
            shlex.quote(str(self._sandbox.layout.directory)),
            "--environment",
            shlex.quote(str(self._sandbox.environment.directory)),
        )
        program.write_text(f"#!/bin/sh\nexec {' '.join(words)}\n")
        program.chmod(0o755)


def _follow(sandbox, page):
    """Yield the parts of a page, with what the commands print now."""
    with Session(sandbox) as session:
        for part in parse((ROOT / page).read_text()):
            if isinstance(part, Step) and part.followed:
                print(f"$ {part.text}", file=sys.stderr)  # noqa: T201
                yield Step(part.command, session.run(part.text))
            else:
                yield part


def main():
    """Follow the page, and write it anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", help="state directory of a sandbox that is up")
    parser.add_argument("--environment", help="OpenStack's virtual environment")
    parser.add_argument("--page", default=PAGE, help="default: %(default)s")
    arguments = parser.parse_args()
    sandbox = Sandbox(arguments.directory, environment=arguments.environment)
    path = ROOT / arguments.page
    path.write_text(render(_follow(sandbox, arguments.page)))


if __name__ == "__main__":
    main()
