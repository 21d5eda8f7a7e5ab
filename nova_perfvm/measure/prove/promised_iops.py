# SPDX-License-Identifier: Apache-2.0
"""Whether each VM reached the IOPS of the class while all VMs ran.

The ratio to the host says nothing of that: half of a slow disk's share is half.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Seen, check_each
from nova_perfvm.measure.prove import promise
from nova_perfvm.measure.prove.inputs import RUN, CollectedMachine, Inputs
from nova_perfvm.measure.statistics.intervals import Estimate, estimate
from nova_perfvm.measure.statistics.verdict import judge

# An assumption: limits of volumes that are set to the promise let 1 or 2 % less pass,
# and rounds differ by as much.
_PART: Final = 0.95


def _guests(inputs: Inputs) -> tuple[CollectedMachine, ...]:
    return inputs.guests if promise.iops(inputs.vm_class) else ()


class Promised(NamedTuple):
    """The IOPS that a VM reached, as a part of the class's promise.

    :ivar way: reads, or writes
    :ivar part: IOPS reached / IOPS promised, over the rounds
    """

    way: str
    promised: int
    who: str
    part: Estimate

    def __str__(self) -> str:
        """Return the reached and the promised IOPS in words."""
        got = round(self.part.ratio * self.promised)
        return f"{got} of {self.promised} {self.way} per second"


def promised(inputs: Inputs) -> Iterator[Promised]:
    """Yield what each VM got of each promise, with all VMs at once."""
    disk = inputs.vm_class.disk
    for way, iops in (("read", disk.read_iops), ("write", disk.write_iops)):
        if not iops:
            continue
        for group, rounds in inputs.measured_groups.items():
            # fio's job of reads alone, and that of writes.
            if group.metric != f"disk.{way}.{way}_iops":
                continue
            if group.at_once < inputs.together:
                continue
            for who in sorted({name for values in rounds.values() for name in values}):
                got = [values[who] for values in rounds.values() if who in values]
                part = estimate([value / iops for value in got])
                yield Promised(f"{way}s", iops, who, part)


def worst(inputs: Inputs) -> list[str]:
    """Return in words the least IOPS of any VM, for reads and for writes."""
    least: dict[str, Promised] = {}
    for one in sorted(promised(inputs), key=lambda one: one.part.ratio):
        least.setdefault(one.way, one)
    return [f"a VM got {least[way]}" for way in sorted(least)]


@check_each(
    85,
    "proof.promised_iops",
    _guests,
    source=RUN,
    remedy="raise what volume type and flavor allow (QoS), or what the disks do; else "
    "promise less: read_iops and write_iops of the class",
)
def _promised_iops(inputs: Inputs, guest: CollectedMachine) -> Seen:
    """Each VM gets the IOPS of its class while all run."""
    disk = inputs.vm_class.disk
    wanted = {"reads": disk.read_iops, "writes": disk.write_iops}
    own = [one for one in promised(inputs) if one.who in guest.who]
    for way in [way for way, iops in wanted.items() if iops]:
        found = [one for one in own if one.way == way]
        if not found:
            yield Level.UNKNOWN, f"no {way} were measured with all VMs at once"
        for one in found:
            level, reason = judge(one.part, _PART, "higher", len(wanted))
            yield level, f"{one}; {reason}".removesuffix("; ")


@check_each(
    86,
    "proof.disk_medium",
    _guests,
    source=f"{RUN}; lsblk -o SERIAL",
    remedy="--directory on the volume that the VM was booted from, of the class's type",
)
def _disk_medium(inputs: Inputs, guest: CollectedMachine) -> Seen:
    """Direct I/O is direct, and on a volume where the class is of volumes."""
    noted = inputs.run.media
    media = [noted[who] for who in guest.who if who in noted]
    for medium in media:
        if not medium.direct:
            yield Level.UNKNOWN, f"{medium.filesystem}: its direct I/O is not direct"
        elif inputs.vm_class.disk.source == "volume" and not medium.volume:
            # Nova's RBD and LVM image disks have no serial.
            yield Level.UNKNOWN, f"{medium.filesystem}: on no volume of Cinder"
        else:
            yield Level.OK, f"{medium.filesystem} {medium.volume}".strip()
    if not media:
        yield Level.UNKNOWN, "nobody noted what fio's directory is on"
