# SPDX-License-Identifier: Apache-2.0
"""The machines of a proof, as its command line and the cloud name them."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nova_perfvm.cloud.proof_servers import ProofServer
from nova_perfvm.documents import textfile
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.measure.bench.scenario import Target

if TYPE_CHECKING:
    from nova_perfvm.measure.prove.plan import Machines

# What installs the tools in a guest.
USER_DATA: Final = """\
#cloud-config
disable_root: false
runcmd:
  - - sh
    - -c
    - |
      for tool in sysbench iperf3 fio cyclictest numactl ethtool python3; do
        command -v $tool && continue
        apt-get update && DEBIAN_FRONTEND=noninteractive apt-get -y install \
          sysbench iperf3 fio rt-tests numactl ethtool python3 ||
          dnf -y install sysbench iperf3 fio realtime-tests numactl ethtool python3
        break
      done
"""


def host_of(
    parsed_args: argparse.Namespace, there: list[ProofServer], flavor: str
) -> str:
    """Return the named host, or the host of the given servers.

    :raises PerfVMError: when there is none, they are not all on it, or have another
        flavor
    """
    if others := [
        f"{one.name} has {one.flavor}" for one in there if one.flavor != flavor
    ]:
        raise PerfVMError(f"expected flavor {flavor}, and {', '.join(others)}")
    names = {one.host for one in there} | ({parsed_args.host} - {None})
    if len(names) != 1:
        raise PerfVMError(
            f"expected one host, found {', '.join(sorted(names)) or 'none'}: name it "
            "with --host, and with --servers only those on it"
        )
    (name,) = names
    return str(name)


def machines(parsed_args: argparse.Namespace, host: str, number: int) -> Machines:
    """Return the machines, with placeholders of VMs."""
    from nova_perfvm.measure.prove.plan import GENERATOR, Machines  # noqa: PLC0415

    options = tuple(parsed_args.ssh_option)
    destination = parsed_args.generator
    return Machines(
        host=Target("host", "host", parsed_args.host_ssh or f"root@{host}", options),
        nodes=(),
        vms=tuple(Target(f"vm{n + 1}", "guest") for n in range(number)),
        generator=destination and Target(GENERATOR, "host", destination, options),
        address=parsed_args.generator_address or (destination or "").rpartition("@")[2],
    )


def targets(
    parsed_args: argparse.Namespace, there: list[ProofServer]
) -> Iterator[Target]:
    output, user = parsed_args.output, parsed_args.user
    options = [*parsed_args.ssh_option]
    if Path(f"{output}.key").exists():
        options += ["-i", f"{output}.key", "-o", "IdentitiesOnly=yes"]
        options += ["-o", "StrictHostKeyChecking=accept-new"]
        options += ["-o", f"UserKnownHostsFile={output}.known"]
    if parsed_args.jump:
        options += ["-J", parsed_args.jump]
    sudo = () if user == "root" else ("sudo", "-n")
    for number, one in enumerate(there, 1):
        destination = f"{user}@{one.address}"
        yield Target(f"vm{number}", "guest", destination, tuple(options), sudo)


def make_key(path: str) -> str:
    """Make a key for the VMs; return what is public of it."""
    for old in (path, f"{path}.pub", f"{path.removesuffix('.key')}.known"):
        Path(old).unlink(missing_ok=True)
    line = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "perfvm", "-f", path)
    try:
        subprocess.run(line, check=True, stdin=subprocess.DEVNULL)  # noqa: S603
    except (OSError, subprocess.CalledProcessError) as exc:
        raise PerfVMError(f"ssh-keygen: {exc}: install OpenSSH's client") from exc
    return textfile.read(f"{path}.pub").strip()
