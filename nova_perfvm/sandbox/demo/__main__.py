# SPDX-License-Identifier: Apache-2.0
"""Run the demo and say by the exit status whether the policy was kept."""

from __future__ import annotations

import argparse
import logging
import sys
import time
import traceback
import warnings

from nova_perfvm.exceptions import PerfVMError

DESCRIPTION = """\
Boot VMs of both classes on a real Nova in this process (two high-performance
hosts, one general host) until they are refused, show where each runs and why
the others do not, and check all of it against the built-in policy.
"""


def main(argv: list[str] | None = None) -> int:
    """Run the demo.

    :returns: 0 when everything is as the policy wants it, 1 when it is not or
        the sandbox is not installed, 2 when the demo itself failed
    """
    parser = argparse.ArgumentParser(
        prog="python -m nova_perfvm.sandbox.demo", description=DESCRIPTION
    )
    parser.parse_args(argv)
    warnings.simplefilter("ignore")
    logging.captureWarnings(capture=True)
    started = time.monotonic()
    try:
        return _run(started)
    except PerfVMError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except Exception:  # noqa: BLE001 -- oslo.log would log it where none looks
        traceback.print_exc()
        return 2


def _run(started: float) -> int:
    # Nova is imported only now: before, warnings and errors have to be dealt
    # with, and --help should not wait for it.
    _progress("importing Nova")
    from nova_perfvm.policy import loader  # noqa: PLC0415
    from nova_perfvm.sandbox.demo import checks, report, story  # noqa: PLC0415
    from nova_perfvm.sandbox.embedded import EmbeddedCloud  # noqa: PLC0415

    policy = loader.load()
    with EmbeddedCloud(options=story.OPTIONS) as cloud:
        outcomes = story.play(cloud, policy, _progress)
    _progress("")
    problems = checks.check(policy, outcomes)
    report.write(sys.stdout, outcomes, problems, time.monotonic() - started)
    return 1 if problems else 0


def _progress(step: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{step}")
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
