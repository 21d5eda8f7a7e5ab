# SPDX-License-Identifier: Apache-2.0
"""What fio's directory is on: a disk of its own, a network's, or memory."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from nova_perfvm.measure.bench import connection
from nova_perfvm.measure.bench.scenario import Target

_ASK_S: Final = 60
# The directory may not exist yet.  A file system without a block device has one line.
_SCRIPT: Final = """\
d=$1
while [ ! -d "$d" ]; do d=$(dirname -- "$d"); done
printf 'filesystem %s\\n' "$(findmnt -nvo FSTYPE -T "$d")"
source=$(findmnt -nvo SOURCE -T "$d")
printf 'source %s\\n' "$source"
file=$(mktemp -- "$d/perfvm-XXXXXX") || exit
trap 'rm -f -- "$file"' EXIT
dd if=/dev/zero of="$file" bs=4096 count=1 oflag=direct 2> /dev/null && echo direct yes
lsblk -snlo NAME "$source" 2> /dev/null | while read -r name; do
  printf 'serial %s\\n' "$(lsblk -dno SERIAL "/dev/$name")"
  printf 'transport %s\\n' "$(lsblk -dno TRAN "/dev/$name")"
  printf 'transport %s\\n' "$(cat "/sys/block/$name/device/transport" 2> /dev/null)"
done
:
"""
# They take O_DIRECT (tmpfs since Linux 6.6, ZFS since 0.8), and cache all the same.
_CACHING: Final = frozenset({"tmpfs", "ramfs", "zfs"})
_NETWORK: Final = frozenset({"nfs", "nfs4", "ceph", "cifs", "glusterfs"})
_TRANSPORTS: Final = frozenset({"iscsi", "fc", "fcoe", "tcp", "rdma"})
# Nova has libvirt give volumes their ID as serial; virtio-blk keeps 20 characters.
_VOLUME: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]+")


@dataclass(frozen=True)
class Medium:
    """What a directory is on.

    :ivar direct: whether direct I/O passes by the page cache there
    :ivar network: whether the kernel there reaches it by a network
    :ivar volume: ID of the Cinder volume, or its first characters; empty without one
    """

    filesystem: str
    direct: bool
    network: bool = False
    volume: str = ""


async def look(target: Target, directory: str) -> Medium:
    """Return the medium of a directory on a target.

    :raises TargetError: when nobody may write there, or the target does not answer
    """
    command = ("sh", "-c", _SCRIPT, "sh", directory)
    return read(await connection.run(target, command, _ASK_S))


def read(text: str) -> Medium:
    """Return the medium by the output of the look: a word and a value a line."""
    told = [line.partition(" ")[::2] for line in text.splitlines()]
    facts = dict(told)
    filesystem = facts.get("filesystem", "")
    serials = [value for key, value in told if key == "serial"]
    transports = {value for key, value in told if key == "transport"}
    return Medium(
        filesystem,
        direct="direct" in facts and filesystem not in _CACHING,
        network=filesystem in _NETWORK
        or facts.get("source", "").startswith("/dev/rbd")
        or bool(transports & _TRANSPORTS),
        volume=next(filter(_VOLUME.fullmatch, serials), ""),
    )
