# SPDX-License-Identifier: Apache-2.0
"""A proof from its options to its verdict, in a cloud that somebody else talks to."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

from nova_perfvm.documents import textfile
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.generate.flavors import PolicyFlavor
from nova_perfvm.measure import samples
from nova_perfvm.measure.bench import run
from nova_perfvm.measure.bench.record import Record
from nova_perfvm.measure.bench.scenario import Scenario, Target
from nova_perfvm.measure.collect.collected import Collected
from nova_perfvm.measure.prove import inputs, loaded, page, plan, promise, proof
from nova_perfvm.measure.prove.plan import GENERATOR, Machines
from nova_perfvm.policy import Policy, VMClass, loader

_NOT_PROVEN: Final = 1
# Guests boot, and install what they lack.
_PATIENCE_S: Final = 900
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


class ReachableServer(Protocol):
    """A server that accepts SSH logins once its guest is up."""

    @property
    def name(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def flavor(self) -> str: ...
    @property
    def address(self) -> str: ...


class CloudOfProof(Protocol):
    """What a proof asks of a cloud."""

    def existing(self) -> Sequence[Any]:
        """Return the servers that the options name; none where it has to boot some."""

    def no_room(self, policy: Policy, host: str) -> Sequence[str]:
        """Return why VMs of the flavor cannot come to a host, and what helps."""

    def boot(
        self, host: str, vm_class: VMClass, public_key: str, user_data: str
    ) -> Sequence[Any]:
        """Boot as many servers as the class allows on a host, and return them."""

    def volumes(
        self, vm_class: VMClass, servers: Sequence[Any]
    ) -> Mapping[str, list[str]] | None:
        """Return {target: its volumes of the class's type}; None for other classes."""


class ProgressShown(Protocol):
    """A line that shows progress."""

    def __call__(self, what: str, done: int, total: int) -> None: ...
    def clear(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class ProofOptions:
    """Options of a proof, as ``prove`` names and describes them."""

    flavor: str | None = None
    host: str | None = None
    output: str = ""
    servers: Sequence[str] = ()
    host_ssh: str | None = None
    generator: str | None = None
    generator_address: str | None = None
    jump: str | None = None
    user: str = "root"
    ssh_option: Sequence[str] = ()
    directory: str | None = None
    baseline: str | None = None
    quick: bool = False
    resume: bool = False

    @property
    def measured(self) -> str:
        """The path of the measurements while the proof runs."""
        return f"{self.output}.run"

    @property
    def page(self) -> str:
        """The path of the record's page."""
        return str(Path(self.output).with_suffix(".html"))

    def check_files(self) -> None:
        """Check, before creating servers, that the output files do not exist yet.

        :raises PerfVMError: when one exists, or options or the directory do not fit
        """
        if self.resume and not self.servers:
            raise PerfVMError(
                "--resume goes on with servers that --keep left: --servers"
            )
        directory = Path(self.output).absolute().parent
        if not directory.is_dir():
            raise PerfVMError(
                f"--output: there is no directory {directory}: make it, or name another"
            )
        if self.page == self.output:
            raise PerfVMError(
                f"{self.page}: its page would be written over it: name another"
            )
        for name in (self.output, self.page):
            if Path(name).exists():
                raise PerfVMError(f"{name} is there already: name another --output")
        if Path(self.measured).exists() and not self.resume:
            raise PerfVMError(
                f"{self.measured} is there already: go on with it by --servers and "
                "--resume, or name another --output"
            )

    def host_of(self, servers: Sequence[ReachableServer], flavor: str) -> str:
        """Return the named host, or the host of the given servers.

        :raises PerfVMError: when no host or several are named, or a server has another
            flavor
        """
        if others := [
            f"{one.name} has {one.flavor}" for one in servers if one.flavor != flavor
        ]:
            raise PerfVMError(f"expected flavor {flavor}, and {', '.join(others)}")
        names = {one.host for one in servers} | ({self.host} if self.host else set())
        if len(names) != 1:
            raise PerfVMError(
                f"expected one host, found {', '.join(sorted(names)) or 'none'}: name "
                "it with --host, and with --servers only those on it"
            )
        return names.pop()

    def machines(self, host: str, number: int) -> Machines:
        """Return the machines with `number` VMs, their addresses and nodes left out."""
        options = tuple(self.ssh_option)
        generator = self.generator
        return Machines(
            host=Target("host", "host", self.host_ssh or f"root@{host}", options),
            nodes=(),
            vms=tuple(Target(f"vm{n + 1}", "guest") for n in range(number)),
            generator=Target(GENERATOR, "host", generator, options)
            if generator
            else None,
            address=self.generator_address or (generator or "").rpartition("@")[2],
        )

    def targets(self, servers: Sequence[ReachableServer]) -> Iterator[Target]:
        """Yield the VMs as ssh reaches them."""
        options = [*self.ssh_option]
        if Path(f"{self.output}.key").exists():
            options += ["-i", f"{self.output}.key", "-o", "IdentitiesOnly=yes"]
            options += ["-o", "StrictHostKeyChecking=accept-new"]
            options += ["-o", f"UserKnownHostsFile={self.output}.known"]
        if self.jump:
            options += ["-J", self.jump]
        sudo = () if self.user == "root" else ("sudo", "-n")
        for number, one in enumerate(servers, 1):
            destination = f"{self.user}@{one.address}"
            yield Target(f"vm{number}", "guest", destination, tuple(options), sudo)


@dataclass
class ProofSession:
    """One proof, or the removal of what proofs have left on machines.

    :ivar tell: prints a line beside the output
    :ivar warn: prints a warning
    """

    asked: ProofOptions
    cloud: CloudOfProof
    tell: Callable[[str], None]
    warn: Callable[[str], None]
    progress: ProgressShown

    def remove_files(self, directory: str) -> None:
        """Remove fio's files below `directory`, on the host and on servers.

        :raises PerfVMError: when neither a host nor servers are named
        """
        asked = self.asked
        if not (asked.host or asked.host_ssh or asked.servers):
            raise PerfVMError(
                "missing: --host, or --servers: where fio's files are to be removed"
            )
        there = self.cloud.existing()
        host = asked.host or (there[0].host if there else "")
        found = [asked.machines(host, 0).host, *asked.targets(there)]
        for target in found:
            self.tell(f"removing fio's files below {directory} on {target.ssh}")
        loaded.remove_files(found, directory)

    def prove(self, policy: Policy) -> tuple[str, int]:
        """Boot VMs where none are named, measure and judge; return verdict and status.

        :raises PerfVMError: when something prevents a proof
        """
        try:
            return self._prove(policy)
        finally:
            self.progress.clear()

    def _prove(self, policy: Policy) -> tuple[str, int]:
        asked, cloud, progress = self.asked, self.cloud, self.progress
        flavor = inputs.flavor_of(policy, asked.flavor or "")
        vm_class = policy.get_class(flavor.class_name)
        promised, directory = promise.iops(vm_class), asked.directory
        if promised and directory is None:
            raise PerfVMError(
                f"missing: --directory: class {vm_class.name} promises IOPS; name one "
                "on the disk of the VMs"
            )
        there = cloud.existing()
        host = asked.host_of(there, flavor.name)
        if not there and (missing := cloud.no_room(policy, host)):
            for line in missing:
                self.tell(line)
            return f"NOT PROVEN {flavor.name} on {host}: there is no room", _NOT_PROVEN
        machines = asked.machines(host, len(there) or vm_class.max_per_host or 1)
        machines = replace(machines, nodes=loaded.nodes(machines.host))
        planned = self._plan(flavor, vm_class, machines)
        known = [one for one in planned.targets if one.kind == "host"]
        loaded.await_ready(known, planned, 0, progress)
        if directory:
            loaded.check_media(known[:1], directory)
        if not there:
            key = make_key(f"{asked.output}.key")
            there = cloud.boot(host, vm_class, key, USER_DATA)
        machines = replace(machines, vms=tuple(asked.targets(there)))
        planned = self._scenario(flavor, vm_class, machines)
        loaded.await_ready(machines.vms, planned, _PATIENCE_S, progress)
        if directory:
            volumes = cloud.volumes(vm_class, there) if promised else None
            loaded.check_media(machines.vms, directory, volumes)
        progress.clear()
        self.tell("measuring, then collecting under load")
        begin = Record.resume if asked.resume else Record.begin
        run.run(planned, begin(asked.measured, planned), progress, self.warn)
        # Last, so that it shows what NICs lost from the first measurement on.
        progress("collecting under load", 0, 0)
        tools = plan.load(flavor, machines, loaded.LOAD_S)
        seen = loaded.collect(machines, tools, flavor.memory_mb, self.warn)
        return judged(asked, policy, flavor.name, seen)

    def _plan(
        self, flavor: PolicyFlavor, vm_class: VMClass, machines: Machines
    ) -> Scenario:
        """Return the scenario; tell how long it takes, and what it leaves out."""
        planned = self._scenario(flavor, vm_class, machines)
        self.tell(f"about {plan.minutes(planned)} minutes")
        if self.asked.quick or self.asked.baseline is not None:
            self.warn("a run with --quick or --baseline measures, and proves nothing")
        if vm_class.vif_multiqueue and machines.generator is None:
            self.warn("without --generator no network is measured, nor proven")
        return planned

    def _scenario(
        self, flavor: PolicyFlavor, vm_class: VMClass, machines: Machines
    ) -> Scenario:
        return plan.scenario_of(
            flavor,
            vm_class,
            machines,
            quick=self.asked.quick,
            baseline=self.asked.baseline is None,
            directory=self.asked.directory,
        )


def judged(
    asked: ProofOptions,
    policy: Policy,
    flavor: str,
    seen: tuple[Collected, tuple[Collected, ...]],
) -> tuple[str, int]:
    """Judge, write the record and its page; return the verdict's line and exit status.

    :param seen: what was collected under load on the host, and in each VM
    """
    record = proof.make(
        policy=loader.dump(policy),
        flavor=flavor,
        seen=seen,
        measured=samples.load(asked.measured),
        baseline=samples.load(asked.baseline) if asked.baseline else None,
    )
    found = proof.judged(record)
    proof.write(asked.output, record, found)
    textfile.replace(asked.page, page.html(record, found), private=True)
    Path(asked.measured).unlink()
    return proof.line(found), found.exit_status


def make_key(path: str) -> str:
    """Make a key for the VMs in place of an older one; return its public half."""
    for old in (path, f"{path}.pub", f"{path.removesuffix('.key')}.known"):
        Path(old).unlink(missing_ok=True)
    line = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "perfvm", "-f", path)
    try:
        subprocess.run(line, check=True, stdin=subprocess.DEVNULL)  # noqa: S603
    except (OSError, subprocess.CalledProcessError) as exc:
        raise PerfVMError(f"ssh-keygen: {exc}: install OpenSSH's client") from exc
    return textfile.read(f"{path}.pub").strip()
