# SPDX-License-Identifier: Apache-2.0
"""``prove``: VMs of a flavor on a host, from their boot to a verdict."""

from __future__ import annotations

import argparse
import contextlib
import signal
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nova_perfvm.cloud import proof_servers
from nova_perfvm.cloud.proof_cloud import ProofCloud
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.findings import CANNOT_TELL
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.judging import JudgingCommand, ObservingCommand
from nova_perfvm.osc.output import SIGINT_EXIT, ProgressLine

if TYPE_CHECKING:
    from nova_perfvm.measure.prove.session import ProofSession

_QUIET_S: Final = 60


class Prove(JudgingCommand, ObservingCommand):
    """Boot VMs of a flavor on a host, measure them, judge, and delete them.

    Exits with 0 if they have what the flavor promises (PROVEN), 2 if they have not
    (REFUTED), 1 if that is open (NOT PROVEN), 3 if it is a measurement and no proof
    (--quick, --baseline, a host that changed), or not all could be deleted.
    """

    needs_cloud = True
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
            "ssh destination of a machine to measure the network against; without a "
            "generator the network is not measured",
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
        """Prove, then delete what was made, also after a failure.

        ``--keep`` deletes nothing; ``--clean`` proves nothing, and deletes what earlier
        proofs left.
        """
        cloud = ProofCloud(
            self.cloud,
            self.tell,
            lambda policy: (
                self.settings(parsed_args, policy),
                self.snapshot(parsed_args, policy),
            ),
            parsed_args.flavor,
            parsed_args.image,
            parsed_args.servers,
            parsed_args.network,
            parsed_args.floating_network,
            parsed_args.volume_gb,
        )
        if parsed_args.clean:
            if parsed_args.directory:
                session = self._session(parsed_args, cloud)
                session.remove_files(parsed_args.directory)
            proof_servers.delete(self.cloud, None, self.tell)
            return
        needed = ["flavor", "output"]
        if not parsed_args.servers:
            needed += ["host", "image"]
        missing = [f"--{n}" for n in needed if getattr(parsed_args, n) is None]
        if missing:
            raise PerfVMError(f"missing: {', '.join(missing)}")
        session = self._session(parsed_args, cloud)
        session.asked.check_files()
        with _terminated() as ended:
            try:
                line, self.exit_status = session.prove(self.policy(parsed_args))
                self.write(f"{line}\n")
            except KeyboardInterrupt:
                self.tell("interrupted")
                self.exit_status = 128 + ended[0] if ended else SIGINT_EXIT
            except PerfVMError as exc:
                self.tell(exc)
                self.exit_status = CANNOT_TELL
            finally:
                if cloud.made:
                    self._clean_up(parsed_args, cloud.proof)

    def _session(
        self, parsed_args: argparse.Namespace, cloud: ProofCloud
    ) -> ProofSession:
        # SciPy is of the extra [measure].
        from nova_perfvm.measure.prove.session import ProofOptions, ProofSession  # noqa: PLC0415

        given = vars(parsed_args)
        asked = ProofOptions(
            **{one.name: given[one.name] for one in fields(ProofOptions)}
        )
        progress = ProgressLine(_QUIET_S)
        return ProofSession(asked, cloud, self.tell, self.warn, progress)

    def _clean_up(self, parsed_args: argparse.Namespace, proof: str) -> None:
        """Delete servers and networks, unless ``--keep``; Ctrl-C does not stop it."""
        if parsed_args.keep:
            kept = ", ".join(proof_servers.left(self.cloud, proof))
            self.tell(f"kept: {kept}; openstack perfvm prove --clean deletes them")
            return

        def refused(*_signal: object) -> None:
            self.tell("deleting goes on; openstack perfvm prove --clean")

        before = signal.signal(signal.SIGINT, refused)
        try:
            proof_servers.delete(self.cloud, proof, self.tell)
            # The deleted servers' keys and notes are useless now.
            for kind in ("key", "key.pub", "known", "run"):
                Path(f"{parsed_args.output}.{kind}").unlink(missing_ok=True)
        finally:
            signal.signal(signal.SIGINT, before)


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
