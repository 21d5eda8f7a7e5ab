# SPDX-License-Identifier: Apache-2.0
"""``prove``: VMs of a flavor on a host, from their boot to a verdict."""

from __future__ import annotations

import argparse
import contextlib
import signal
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from nova_perfvm.changes.migrations import goals
from nova_perfvm.changes.migrations.model import command
from nova_perfvm.changes.migrations.planning import Planning
from nova_perfvm.cloud import candidates, images, proof_servers, servers
from nova_perfvm.cloud.proof_servers import ProofServer, WantedServers
from nova_perfvm.diagnose import explain
from nova_perfvm.diagnose.explain.headline import headline
from nova_perfvm.documents import textfile
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.findings import CANNOT_TELL
from nova_perfvm.generate.flavors import PolicyFlavor
from nova_perfvm.measure import samples
from nova_perfvm.measure.bench import run
from nova_perfvm.measure.bench.record import Record
from nova_perfvm.osc import options as opt
from nova_perfvm.osc import proof_machines
from nova_perfvm.osc.judging import JudgingCommand, ObservingCommand
from nova_perfvm.osc.output import SIGINT_EXIT, ProgressLine
from nova_perfvm.policy import Policy, VMClass, loader

_NOT_PROVEN: Final = 1
# Guests boot, and install what they lack.
_PATIENCE_S: Final = 900
_QUIET_S: Final = 60


class Prove(JudgingCommand, ObservingCommand):
    """Boot VMs of a flavor on a host, measure them, judge, and delete them.

    Exits with 0 if they have what the flavor promises (PROVEN), 2 if they have not
    (REFUTED), 1 if that is open (NOT PROVEN), 3 if it is a measurement and no proof
    (--quick, --baseline, a host that changed), or not all could be deleted.
    """

    needs_cloud = True
    _made = False
    proof = ""
    arguments: opt.Arguments = (
        opt.option("--flavor NAME", "a flavor of the policy"),
        opt.option("--host HOST", "where to boot: a compute service"),
        opt.option(
            "--servers SERVER",
            "prove these, all of the flavor on their host; nothing is made",
            nargs="+",
            default=[],
        ),
        opt.option("--image IMAGE", "image to boot, one of cloud-init"),
        opt.option("--network NETWORK", "default: the only one"),
        opt.option(
            "--floating-network NETWORK",
            "reach the VMs by floating addresses of this one (default: by their "
            "own addresses)",
        ),
        opt.option(
            "--volume-gb N",
            "root volume of VMs of classes with volumes (default: %(default)s)",
            type=opt.count,
            default=20,
        ),
        opt.option(
            "--host-ssh DESTINATION", "where ssh reaches the host (default: root@HOST)"
        ),
        opt.option(
            "--generator DESTINATION",
            "where ssh reaches a machine that the network is measured against; "
            "without one it is not",
        ),
        opt.option(
            "--generator-address ADDRESS",
            "of the generator, for host and VMs (default: that of --generator)",
        ),
        opt.option("--jump DESTINATION", "reach the VMs through this"),
        opt.option(
            "--user",
            "who logs in to VMs, by sudo if it is not root (default: %(default)s)",
            default="root",
        ),
        opt.repeated(
            "--ssh-option WORD", "for ssh, such as --ssh-option=-F --ssh-option=FILE"
        ),
        opt.option(
            "--directory PATH",
            "measure the disk that this is on, in VMs and on the host",
        ),
        opt.file(
            "--baseline",
            "what bench run has measured on this host, or on one like it, in "
            "place of measuring it: a measurement, no proof",
        ),
        opt.flag("--quick", "measure for at most 10 minutes, which is no proof"),
        opt.flag("--keep", "delete nothing"),
        opt.flag(
            "--resume",
            "go on with what was measured, by --servers with those that --keep left",
        ),
        opt.flag(
            "--clean",
            "only delete what proofs have left in the project; with --directory fio's "
            "files on --host, and in --servers, too",
        ),
        opt.file(
            "--output", "JSON of the record to write; its page is beside it, in .html"
        ),
        opt.NOVA_DB,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Prove; whatever happens, delete what was made."""
        if parsed_args.clean:
            self._clean(parsed_args)
            return
        needed = ["flavor", "output"]
        if not parsed_args.servers:
            needed += ["host", "image"]
        missing = [f"--{n}" for n in needed if getattr(parsed_args, n) is None]
        if missing:
            raise PerfVMError(f"missing: {', '.join(missing)}")
        _check_files(parsed_args)
        self.proof = uuid.uuid4().hex[:8]
        with _terminated() as ended:
            try:
                self._prove(parsed_args)
            except KeyboardInterrupt:
                self._tell("interrupted")
                self.exit_status = 128 + ended[0] if ended else SIGINT_EXIT
            except PerfVMError as exc:
                self._tell(str(exc))
                self.exit_status = CANNOT_TELL
            finally:
                self._clean_up(parsed_args)

    def _clean(self, parsed_args: argparse.Namespace) -> None:
        """Delete what proofs have left: in the project, and fio's files on a host."""
        directory, host = parsed_args.directory, parsed_args.host
        if directory and not (host or parsed_args.host_ssh or parsed_args.servers):
            raise PerfVMError(
                "missing: --host, or --servers: where fio's files are to be removed"
            )
        if directory:
            from nova_perfvm.measure.prove import loaded  # noqa: PLC0415

            there = [
                proof_servers.existing(self.cloud, one.id)
                for one in servers.named(self.cloud, parsed_args.servers)
            ]
            host = host or (there[0].host if there else "")
            found = [
                proof_machines.machines(parsed_args, host, 0).host,
                *proof_machines.targets(parsed_args, there),
            ]
            for target in found:
                self._tell(f"removing fio's files below {directory} on {target.ssh}")
            loaded.remove_files(found, directory)
        proof_servers.delete(self.cloud, None, self._tell)

    def _prove(self, parsed_args: argparse.Namespace) -> None:
        # SciPy is of the extra [measure].
        from nova_perfvm.measure.prove import inputs, loaded, plan, promise  # noqa: PLC0415

        policy = self.policy(parsed_args)
        flavor = inputs.flavor_of(policy, parsed_args.flavor)
        vm_class = policy.get_class(flavor.class_name)
        directory = parsed_args.directory
        if promise.iops(vm_class) and directory is None:
            raise PerfVMError(
                f"missing: --directory: class {vm_class.name} promises IOPS; name one "
                "on the disk of the VMs"
            )
        there = [
            proof_servers.existing(self.cloud, one.id)
            for one in servers.named(self.cloud, parsed_args.servers)
        ]
        host = proof_machines.host_of(parsed_args, there, flavor.name)
        if not there and (missing := self._no_room(parsed_args, policy, host)):
            for line in missing:
                self._tell(line)
            self.write(f"NOT PROVEN {flavor.name} on {host}: there is no room\n")
            self.exit_status = _NOT_PROVEN
            return
        machines = proof_machines.machines(
            parsed_args, host, len(there) or vm_class.max_per_host or 1
        )
        machines = replace(machines, nodes=loaded.nodes(machines.host))
        how = {
            "quick": parsed_args.quick,
            "baseline": parsed_args.baseline is None,
            "directory": directory,
        }
        planned = plan.scenario_of(flavor, vm_class, machines, **how)
        self._tell(f"about {plan.minutes(planned)} minutes")
        if parsed_args.quick or parsed_args.baseline is not None:
            self.warn("a run with --quick or --baseline measures, and proves nothing")
        if vm_class.vif_multiqueue and machines.generator is None:
            self.warn("without --generator no network is measured, nor proven")
        known = [one for one in planned.targets if one.kind == "host"]
        with ProgressLine(_QUIET_S) as progress:
            loaded.await_ready(known, planned, 0, progress)
            if directory:
                loaded.check_media(known[:1], directory)
            if not there:
                there = self._boot(parsed_args, host, flavor, vm_class)
            machines = replace(
                machines, vms=tuple(proof_machines.targets(parsed_args, there))
            )
            planned = plan.scenario_of(flavor, vm_class, machines, **how)
            loaded.await_ready(machines.vms, planned, _PATIENCE_S, progress)
            if directory:
                promised = promise.iops(vm_class)
                volumes = self._volumes(vm_class, there, promised=promised)
                loaded.check_media(machines.vms, directory, volumes)
            progress.clear()
            self._tell("measuring, then collecting under load")
            path = f"{parsed_args.output}.run"
            begin = Record.resume if parsed_args.resume else Record.begin
            run.run(planned, begin(path, planned), progress, self.warn)
            # Last, so that it shows what NICs lost from the first measurement on.
            progress("collecting under load", 0, 0)
            tools = plan.load(flavor, machines, loaded.LOAD_S)
            seen = loaded.collect(machines, tools, flavor.memory_mb, self.warn)
        self._judge(parsed_args, policy, flavor.name, seen, path)

    def _volumes(
        self, vm_class: VMClass, there: list[ProofServer], *, promised: bool
    ) -> dict[str, list[str]] | None:
        """Return {target: its volumes of the class's type}; None for other classes."""
        wanted = vm_class.disk.volume_type
        if vm_class.disk.source != "volume" or not promised:
            return None
        return {
            f"vm{number}": [
                volume["id"]
                for one in server.volumes
                for volume in [
                    self.cloud.cinder("GET", f"/volumes/{one}", key="volume")
                ]
                if wanted in {None, volume["volume_type"]}
            ]
            for number, server in enumerate(there, 1)
        }

    def _no_room(
        self, parsed_args: argparse.Namespace, policy: Policy, host: str
    ) -> list[str]:
        """Return why the class's VMs cannot come to a host, and what helps."""
        settings = self.settings(parsed_args, policy)
        snapshot = self.snapshot(parsed_args, policy)
        request, _ = explain.request_of(
            snapshot, flavor=parsed_args.flavor, image=parsed_args.image
        )
        offered = candidates.offered(self.cloud, request, settings, snapshot.aggregates)
        found = explain.explain(
            policy, snapshot, request, settings, host=host, offered=offered
        )
        if snapshot.servers_by_host.get(host):
            drained = goals.drain(Planning(policy, snapshot, settings), host)
            moves = [line for m in drained.moves for line in command(m).splitlines()]
            how = f"{host} has servers; openstack perfvm plan drain {host} --execute:"
            return [how, *moves, *drained.reasons]
        return [] if found.accepting else [headline(found)]

    def _boot(
        self,
        parsed_args: argparse.Namespace,
        host: str,
        flavor: PolicyFlavor,
        vm_class: VMClass,
    ) -> list[ProofServer]:
        api, floating = self.cloud, parsed_args.floating_network
        of_volume = vm_class.disk.source == "volume"
        path = "/flavors/detail?is_public=None"
        wanted = WantedServers(
            proof=self.proof,
            host=host,
            flavor=next(
                one["id"]
                for one in api.nova_list(path, "flavors")
                if one["name"] == flavor.name
            ),
            image=images.find_image(api, parsed_args.image).id,
            count=vm_class.max_per_host or 1,
            network=proof_servers.find_network(api, parsed_args.network),
            floating_network=floating
            and proof_servers.find_network(api, floating, external=True),
            public_key=proof_machines.make_key(f"{parsed_args.output}.key"),
            user_data=proof_machines.USER_DATA,
            volume_gb=parsed_args.volume_gb if of_volume else None,
            volume_type=vm_class.disk.volume_type if of_volume else None,
        )
        self._made = True
        return list(proof_servers.create(api, wanted, self._tell))

    def _judge(
        self,
        parsed_args: argparse.Namespace,
        policy: Policy,
        flavor: str,
        seen: Any,
        path: str,
    ) -> None:
        from nova_perfvm.measure.prove import page, proof  # noqa: PLC0415

        record = proof.make(
            policy=loader.dump(policy),
            flavor=flavor,
            seen=seen,
            measured=samples.load([path]),
            baseline=parsed_args.baseline and samples.load([parsed_args.baseline]),
        )
        judged = proof.judged(record)
        proof.write(parsed_args.output, record, judged)
        html = page.html(record, judged)
        textfile.replace(_page(parsed_args.output), html, private=True)
        Path(path).unlink()
        self.exit_status = judged.exit_status
        self.write(f"{proof.line(judged)}\n")

    def _clean_up(self, parsed_args: argparse.Namespace) -> None:
        """Delete the created servers and networks; Ctrl-C does not interrupt this."""
        if not self._made:
            return
        if parsed_args.keep:
            kept = ", ".join(proof_servers.left(self.cloud, self.proof))
            self._tell(f"kept: {kept}; openstack perfvm prove --clean deletes them")
            return

        def refused(*_signal: object) -> None:
            self._tell("deleting goes on; openstack perfvm prove --clean")

        before = signal.signal(signal.SIGINT, refused)
        try:
            proof_servers.delete(self.cloud, self.proof, self._tell)
            # The deleted servers' keys and notes are useless now.
            for kind in ("key", "key.pub", "known", "run"):
                Path(f"{parsed_args.output}.{kind}").unlink(missing_ok=True)
        finally:
            signal.signal(signal.SIGINT, before)

    def _tell(self, text: str) -> None:
        self.tell(f"{text}")


def _check_files(parsed_args: argparse.Namespace) -> None:
    """Check, before creating servers, that the output files do not exist yet.

    :raises PerfVMError: a file exists, which may hold hours of work
    """
    path = f"{parsed_args.output}.run"
    if parsed_args.resume and not parsed_args.servers:
        raise PerfVMError("--resume goes on with servers that --keep left: --servers")
    directory = Path(parsed_args.output).absolute().parent
    if not directory.is_dir():
        raise PerfVMError(
            f"--output: there is no directory {directory}: make it, or name another"
        )
    page = _page(parsed_args.output)
    if page == parsed_args.output:
        raise PerfVMError(f"{page}: its page would be written over it: name another")
    for name in (parsed_args.output, page):
        if Path(name).exists():
            raise PerfVMError(f"{name} is there already: name another --output")
    if Path(path).exists() and not parsed_args.resume:
        raise PerfVMError(
            f"{path} is there already: go on with it by --servers and --resume, or "
            "name another --output"
        )


def _page(output: str) -> str:
    """Return where the page of a record is."""
    return str(Path(output).with_suffix(".html"))


@contextlib.contextmanager
def _terminated() -> Iterator[list[int]]:
    """Turn SIGTERM and SIGHUP into interruptions, and list the received signals.

    An ignored signal, such as SIGHUP under nohup, stays ignored.
    """
    seen: list[int] = []

    def terminated(number: int, _frame: object) -> None:
        seen.append(number)
        # Shells have their background jobs ignore SIGINT.
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    numbers = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN
    ]
    before = [signal.signal(number, terminated) for number in numbers]
    try:
        yield seen
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
