# SPDX-License-Identifier: Apache-2.0
"""The host's nova.conf, for its CPU sets."""

from __future__ import annotations

from typing import Final, NamedTuple

from nova_perfvm import cpuset
from nova_perfvm.documents import textfile
from nova_perfvm.documents.document import KINDS, kind_of
from nova_perfvm.documents.mistakes import UnreadableFileError
from nova_perfvm.exceptions import CPUSetError, PerfVMError
from nova_perfvm.generate.options import DEDICATED_SET, SHARED_SET
from nova_perfvm.placement.settings import PIN_SET, is_true

PATH: Final = "/etc/nova/nova.conf"
# The longest nova.conf, with all its comments, has half a megabyte.
_MOST_BYTES: Final = 4 * 1024 * 1024
_SETS: Final = (DEDICATED_SET, SHARED_SET, PIN_SET)


class NovaConfError(PerfVMError):
    """A file that is no nova.conf of a host, or whose CPU sets mean nothing."""


class VMCPUSets(NamedTuple):
    """The CPUs that VMs own, and the CPUs that VMs share.

    :ivar whole: whether the sets are Nova's configuration; otherwise they are the
        CPUs of running VMs, and later VMs may take others
    :ivar saves_power: the state of dedicated CPUs without a VM: ``cpu_state``
        is offline, ``governor`` is a slow one; empty if Nova leaves these CPUs alone,
        None if unknown
    :ivar connections: parallel connections of a live migration
    :ivar either: CPUs that Nova gives to pinned and unpinned VMs alike; `dedicated`
        and `shared` are then the CPUs of running VMs
    """

    dedicated: frozenset[int]
    shared: frozenset[int]
    source: str
    whole: bool
    saves_power: str | None = None
    connections: int = 1
    either: frozenset[int] = frozenset()

    @property
    def told(self) -> tuple[frozenset[int], frozenset[int]] | None:
        """CPUs that Nova may pin VMs to, CPUs for unpinned VMs; None if not known."""
        if not self.whole:
            return None
        return self.dedicated | self.either, self.shared | self.either


def read(path: str) -> str:
    """Return the text of a nova.conf.

    :raises NovaConfError: when the file cannot be read, or is no nova.conf
    """
    try:
        text = textfile.read(path, _MOST_BYTES)
        parse(text)
    except (UnreadableFileError, NovaConfError) as exc:
        raise NovaConfError(
            f"{path}: {exc}; expected the host's nova.conf, with [DEFAULT] or "
            f"[compute] in it, such as a copy of {PATH}"
        ) from None
    return text


def parse(text: str) -> VMCPUSets:
    """Return the CPU sets that a nova.conf has.

    :raises NovaConfError: when the text is no nova.conf, or a CPU set is no list
    """
    # oslo.config takes time to load.
    from nova_perfvm.documents import config_file  # noqa: PLC0415

    if kind := kind_of(text):
        raise NovaConfError(f"this is {KINDS[kind].title}")
    try:
        found = config_file.settings_of(text)
    except config_file.SettingsError as exc:
        raise NovaConfError(str(exc)) from None
    if not {group for group, _ in found} & {"DEFAULT", "compute"}:
        raise NovaConfError("nothing of Nova in it")
    sets = {}
    for setting in _SETS:
        try:
            value = config_file.substituted(found, setting.key, [s.key for s in _SETS])
            sets[setting] = cpuset.parse(value)
        except (config_file.SettingsError, CPUSetError) as exc:
            raise NovaConfError(f"{setting}: {exc}") from None
        if value and not sets[setting]:
            raise NovaConfError(f"{setting} = {value} leaves no CPU")
    dedicated, shared, either = sets.values()
    if dedicated and either:
        raise NovaConfError(
            f"{PIN_SET} stands beside {DEDICATED_SET}, and nova-compute does not start"
        )
    saves = is_true(found.get(("libvirt", "cpu_power_management"), ""))
    strategy = found.get(("libvirt", "cpu_power_management_strategy")) or "cpu_state"
    many = found.get(("libvirt", "live_migration_parallel_connections"), "1")
    return VMCPUSets(
        dedicated,
        frozenset() if either else shared,
        PATH,
        whole=True,
        saves_power=strategy if saves else "",
        connections=int(many) if many.isdecimal() else 1,
        either=either,
    )
