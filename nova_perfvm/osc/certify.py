# SPDX-License-Identifier: Apache-2.0
"""``certify``: judge whether VMs of a flavor get what the flavor promises."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nova_perfvm.documents import textfile
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.findings import Finding, exit_code
from nova_perfvm.osc import snapshot as snapshots
from nova_perfvm.osc.base import (
    PolicyCommand,
    argument,
    file_argument,
    policy_file,
    positive,
)
from nova_perfvm.osc.check import HOST_CONF, NOVA_VIEW
from nova_perfvm.osc.compare import LATENCY_TARGET, MEASURED, TARGET
from nova_perfvm.osc.formats import text
from nova_perfvm.osc.judging import JudgingCommand

if TYPE_CHECKING:
    from nova_perfvm.measure.prove.judge import Judged
    from nova_perfvm.measure.prove.record import Document


# Inputs of a record that the file of a proof contains.
_PARTS: Final = ("flavor", "host_collect", "guest_collect", "samples")


class Certify(JudgingCommand, PolicyCommand):
    """Judge whether VMs have what their flavor promises, and record it.

    Writes a record (JSON) and a page of it (HTML). Exits with 0 if the promise is
    certified, 1 if it is not proven, 2 if it is refused.
    """

    arguments = (
        file_argument(
            "--proof",
            help="the record of openstack perfvm prove, in place of policy, flavor, "
            "collected files and samples, which it has",
        ),
        argument("--flavor", metavar="NAME", help="a flavor of the policy"),
        file_argument("--host-collect", help="what host collect has written"),
        file_argument(
            "--guest-collect",
            action="append",
            default=[],
            help="what guest collect has written in a VM of the flavor on that host; "
            "once for each of them",
        ),
        file_argument("--samples", help=MEASURED),
        TARGET,
        LATENCY_TARGET,
        argument(
            "--within",
            type=positive,
            default=60.0,
            metavar="MINUTES",
            help="how far apart in time the files may be (default: %(default)g)",
        ),
        HOST_CONF,
        NOVA_VIEW,
        file_argument(
            "--previous",
            help="an earlier record: what passed there has to pass, and no ratio to be "
            "worse than by chance",
        ),
        argument(
            "--signed-off-by",
            metavar="NAME",
            help="who answers for the record; noted as given",
        ),
        file_argument(
            "--output",
            required=True,
            help="JSON of the record to write; its page is beside it, in .html",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Judge, write both files, and say what the verdict is."""
        page_path = str(Path(parsed_args.output).with_suffix(".html"))
        read = {
            policy_file(parsed_args),
            parsed_args.host_collect,
            parsed_args.samples,
            parsed_args.snapshot,
            parsed_args.nova_conf,
            *parsed_args.guest_collect,
            parsed_args.previous,
            parsed_args.proof,
        }
        for path in (parsed_args.output, page_path):
            if path in read or parsed_args.output == page_path:
                raise PerfVMError(
                    f"{path}: it would be written over: name another --output"
                )
        given = [name for name in _PARTS if getattr(parsed_args, name)]
        if parsed_args.proof is None and len(given) < len(_PARTS):
            missing = [_option(name) for name in _PARTS if name not in given]
            raise PerfVMError(f"missing: {', '.join(missing)}; or --proof")
        given += [
            name for name in ("nova_conf", "snapshot") if getattr(parsed_args, name)
        ]
        if parsed_args.proof is not None and given:
            raise PerfVMError(f"--proof stands alone: leave {_option(given[0])} out")
        # SciPy is of the extra [measure].
        from nova_perfvm.measure.prove import page, record  # noqa: PLC0415
        from nova_perfvm.measure.report import answer  # noqa: PLC0415

        judged, found = self._judged(parsed_args)
        # Private, as record and page contain much of the collected files.
        textfile.replace(parsed_args.output, record.dumps(found), private=True)
        textfile.replace(page_path, page.html(found, judged.comparisons), private=True)
        self.exit_status = exit_code(judged.level, strict=True)
        columns = text.width(self.app.stdout)
        for findings in (_reasons(judged), judged.warnings):
            said = text.findings(findings, columns)
            self.write(f"{said}\n" if said else "")
        before = found["previous"] or {"remarks": ()}
        lines = [f"against {before['path']}: {r}" for r in before["remarks"]]
        lines += [
            f"{parsed_args.output}, {page_path}: sha256 {found['sha256']}",
            answer.answer(judged.comparisons),
            f"flavor {judged.inputs.flavor.name}: {found['verdict'].upper()}",
        ]
        self.write("".join(f"{line}\n" for line in lines))

    def _judged(self, parsed_args: argparse.Namespace) -> tuple[Judged, Document]:
        # SciPy is of the extra [measure].
        from nova_perfvm.measure.prove import certificate, inputs, proof  # noqa: PLC0415

        within_s = 60 * parsed_args.within
        if parsed_args.proof is not None:
            found = proof.read(parsed_args.proof)
            read = partial(proof.inputs_of, found, parsed_args.proof, within_s)
        else:
            paths = inputs.Paths(
                host=parsed_args.host_collect,
                guests=parsed_args.guest_collect,
                samples=parsed_args.samples,
                policy=policy_file(parsed_args),
                nova_conf=parsed_args.nova_conf,
                snapshot=parsed_args.snapshot,
            )
            read = partial(
                inputs.load,
                paths,
                parsed_args.flavor,
                read_snapshot=snapshots.read,
                within_s=within_s,
            )
        return certificate.make(
            read,
            target=parsed_args.target,
            latency_target=parsed_args.latency_target,
            previous=parsed_args.previous,
            signed_off_by=parsed_args.signed_off_by,
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _reasons(judged: Judged) -> Iterator[Finding]:
    """Yield the reasons for a promise that is not certified, with their subjects."""
    for one in judged.reasons:
        about = ": ".join(filter(None, (one.source, one.subject)))
        yield one._replace(subject=about, source="")
