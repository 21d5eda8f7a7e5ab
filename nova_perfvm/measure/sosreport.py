# SPDX-License-Identifier: Apache-2.0
"""A sosreport, read as if it were the machine that it was made on.

Where sos puts things (github.com/sosreport/sos; sos/report/plugins):

* ``processor``, ``numa``, ``memory``, ``kernel``, ``hardware``, ``block``,
  ``cgroups``, ``process`` and ``networking`` copy files of /proc and /sys under
  their paths.  They copy symbolic links as such (``_copy_symlink`` of
  ``__init__.py``), so that ``sys/class/net/eth0`` leads to ``sys/devices``.
* Outputs of commands are ``sos_commands/PLUGIN/NAME``, where NAME is the command
  with what is no letter, digit, ``-`` or ``.`` replaced (``_mangle_command``).
  ``networking`` runs ``ethtool -l``, ``-i`` and ``-S`` for each interface, and no
  ``-x``.  ``virsh`` runs ``virsh -r dumpxml`` with the domains' names; before it
  was a plugin of its own, ``libvirt`` did.
* ``sos_reports/manifest.json`` has the exit codes, from sos 4.0 on.  Standard error
  is in the output.
* What exceeds sos's limit is a link to its end below ``sos_strings``.

There is one look at counters, and nothing of tasks: sos copies neither.

Of each process only the name is wanted of its status: jc's parser fails at a name
with a line break that Python knows and the kernel does not escape, such as U+0085.
"""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

from nova_perfvm.measure.archive import Archive
from nova_perfvm.measure.collected import Kind
from nova_perfvm.measure.collector import MOST_BYTES, Output, UnreadError

MANIFEST: Final = "/sos_reports/manifest.json"
COMMANDS: Final = "/sos_commands/"
# Of coreutils' timeout, which sos runs commands under.
_TIMED_OUT: Final = 124
_MOST_LINKS: Final = 40

_WANTED: Final = re.compile(
    r"/proc/(?!\d|self|thread-self).*"
    r"|/proc/\d+(/(cmdline|comm|status|cgroup|numa_maps|task(/.*)?))?"
    r"|/sys/(block|class/net|devices|kernel/mm)(/.*)?"
    r"|/sys/fs/cgroup(/.*cpuset\.[a-z.]+)?"
    r"|/etc/(tuned/active_profile|os-release|nova/provider_config/.*)"
    r"|/usr/lib/os-release"
    r"|/sos_commands/(host|libvirt|networking|virsh)/.*"
    rf"|{MANIFEST}"
)
_COMM: Final = re.compile(r"(/proc/\d+)/comm")
_NAME: Final = re.compile(r"^Name:\t(.*)$", re.MULTILINE)
_UUID: Final = re.compile(r"<uuid>\s*([0-9a-f-]{36})\s*</uuid>")
_DUMPXML: Final = "virsh -r dumpxml "
_LIST: Final = "virsh -r list --all --uuid"
# How ethtool and virsh complain, where no manifest has their exit codes.
_COMPLAINT: Final = re.compile(r"(Cannot |netlink error|error: )")


def most_bytes(path: str) -> int:
    """Return how large a file of a sosreport may be; 0 if nobody looks at it."""
    return MOST_BYTES if _WANTED.fullmatch(path) else 0


class SosReport:
    """Has what :class:`nova_perfvm.measure.collector.LocalMachine` has."""

    def __init__(self, archive: Archive) -> None:
        """Look for outputs of commands."""
        self._archive = archive
        self._children: dict[str, set[str]] = {}
        for paths in (archive.files, archive.links, archive.directories):
            for path in paths:
                self._add(path)
        self._outputs = {
            path.rpartition("/")[-1]: path
            for path in (*archive.files, *archive.links)
            if path.startswith(COMMANDS)
        }

    @property
    def has_commands(self) -> bool:
        """Whether it is a sosreport."""
        return bool(self._outputs)

    @property
    def kind(self) -> Kind:
        """What the machine seems to be: with virsh, a host."""
        return "host" if any(n.startswith("virsh") for n in self._outputs) else "guest"

    @property
    def hostname(self) -> str:
        """The machine's name, else the report's."""
        try:
            name = self.read(f"{COMMANDS}host/hostname").strip()
        except UnreadError:
            name = ""
        return name or self._archive.top

    def now(self) -> str:
        """Return when the last command was run."""
        times = self._archive.times
        last = max((t for p, t in times.items() if p.startswith(COMMANDS)), default=0)
        try:
            when = datetime.fromtimestamp(int(last), UTC)
        except (ValueError, OverflowError, OSError):
            when = datetime.fromtimestamp(0, UTC)
        return when.isoformat()

    def read(self, path: str) -> str:
        """Return the text of a file.

        :raises UnreadError: when it is not in the report
        """
        archive, real = self._archive, self._resolved(path)
        if real in archive.files:
            return archive.files[real].decode("utf-8", "replace")
        if real in archive.left_out:
            raise UnreadError(archive.left_out[real])
        # sos copies the status, which has the name as well.
        comm = _COMM.fullmatch(real)
        if comm and (name := _NAME.search(self.read(f"{comm[1]}/status"))):
            return f"{name[1]}\n"
        raise UnreadError("the sosreport does not have it", gone=True)

    def names(self, path: str) -> list[str]:
        """Return the names in a directory.

        :raises UnreadError: when it is not in the report
        """
        real = self._resolved(path)
        if real not in self._children and real not in self._archive.directories:
            raise UnreadError("the sosreport does not have it", gone=True)
        return list(self._children.get(real, ()))

    def link(self, path: str) -> str:
        """Return where a symbolic link leads to.

        :raises UnreadError: when it is not in the report
        """
        above, _, name = path.rpartition("/")
        real = f"{self._resolved(above)}/{name}"
        if real not in self._archive.links:
            raise UnreadError("the sosreport has no such link", gone=True)
        return self._archive.links[real]

    def run(self, command: Sequence[str]) -> Output:
        """Return what sos noted of a command.

        :raises UnreadError: when it did not run it, or not to its end
        """
        line = " ".join(command)
        uuid = line.removeprefix(_DUMPXML)
        if line == _LIST:
            return 0, "".join(f"{uuid}\n" for uuid in self._domains), ""
        if line.startswith(_DUMPXML) and uuid in self._domains:
            return 0, self._domains[uuid], ""
        name = _mangled(line)
        if name not in self._outputs:
            raise UnreadError("the sosreport has no output of it", gone=True)
        return self._output(name)

    def _output(self, name: str) -> Output:
        path = self._outputs[name]
        text = self.read(path)
        exit_code = self._exit_codes.get(path)
        if exit_code is None:
            exit_code = 1 if _COMPLAINT.match(text) else 0
        if exit_code == _TIMED_OUT:
            raise UnreadError("it was not over when sos gave up")
        return (exit_code, "", text) if exit_code else (0, text, "")

    @cached_property
    def _domains(self) -> dict[str, str]:
        """Return {UUID: XML} of the domains, which sos has by their names."""
        found = {}
        for name in sorted(self._outputs):
            if name.startswith(_mangled(_DUMPXML)):
                try:
                    exit_code, text, _ = self._output(name)
                except UnreadError:
                    continue
                uuid = _UUID.search(text)
                if uuid and not exit_code:
                    found[uuid[1]] = text
        if not found:
            raise UnreadError("the sosreport has no domain's XML", gone=True)
        return found

    @cached_property
    def _exit_codes(self) -> dict[str, int]:
        """Return {path of an output: exit code}."""
        try:
            document = json.loads(self.read(MANIFEST))
        except (UnreadError, ValueError, RecursionError):
            return {}
        return {
            f"/{path.lstrip('/')}": code
            for path, code in _commands(document)
            if isinstance(path, str) and isinstance(code, int)
        }

    def _add(self, path: str) -> None:
        while path:
            above, _, name = path.rpartition("/")
            self._children.setdefault(above, set()).add(name)
            path = above

    def _resolved(self, path: str) -> str:
        """Return a path without links.

        :raises UnreadError: when they lead elsewhere, or in a circle
        """
        links = self._archive.links
        todo = path.split("/")[:0:-1]
        real, followed = "", 0
        while todo:
            part = todo.pop()
            if part in {"", "."}:
                continue
            if part == "..":
                if not real:
                    raise UnreadError("its link leads out of the sosreport")
                real = real.rpartition("/")[0]
                continue
            real = f"{real}/{part}"
            if real in links:
                followed += 1
                target = links[real]
                if followed > _MOST_LINKS:
                    raise UnreadError("too many links lead to it")
                todo += target.split("/")[::-1]
                real = "" if target.startswith("/") else real.rpartition("/")[0]
        if real.startswith("/sos_strings/"):
            raise UnreadError("the sosreport has only its end")
        return real


def _mangled(line: str) -> str:
    """Return the file name of a command's output."""
    return re.sub(r"[^\w\-./]+", "_", line).replace("/", ".").strip(" .")


def _commands(manifest: Any) -> Iterator[tuple[Any, Any]]:
    """Yield path and exit code of each command that the manifest has."""
    found = manifest
    for key in ("components", "report", "plugins"):
        found = found.get(key) if isinstance(found, dict) else None
    for plugin in found.values() if isinstance(found, dict) else ():
        listed = plugin.get("commands") if isinstance(plugin, dict) else None
        for command in listed if isinstance(listed, list) else ():
            if isinstance(command, dict):
                yield command.get("filepath"), command.get("return_code")
