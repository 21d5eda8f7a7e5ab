# SPDX-License-Identifier: Apache-2.0
"""Run the demo and say by the exit status whether the policy was kept.

Boot VMs of both classes on a real Nova in this process (two high-performance
hosts, one general host) until they are refused, show where each runs and why
the others do not, and check all of it against the built-in policy.
"""

from __future__ import annotations

import logging
import sys
import time
import warnings

from nova_perfvm.exceptions import PerfVMError


def main() -> int:
    """Run the demo.

    :returns: 0 when everything is as the policy wants it, 1 when it is not or
        the sandbox is not installed
    """
    warnings.simplefilter("ignore")
    logging.captureWarnings(capture=True)
    started = time.monotonic()
    _progress("importing Nova")
    try:
        # Only now, as it warns, and as it may be missing.
        from nova_perfvm.policy import loader
        from tests.cloud import EmbeddedCloud
        from tests.demo import checks, report, story

        policy = loader.load()
        with EmbeddedCloud(options=story.OPTIONS) as cloud:
            outcomes = story.play(cloud, policy, _progress)
    except PerfVMError as error:
        sys.stderr.write(f"{error}\n")
        return 1
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
