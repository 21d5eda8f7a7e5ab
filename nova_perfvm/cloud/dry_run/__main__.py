# SPDX-License-Identifier: Apache-2.0
"""Answer one question: ``python -m nova_perfvm.cloud.dry_run --config-file NOVA_CONF``.

The question comes by standard input, the answer goes to standard output, both as JSON.
"""

import json
import os
import sys
import traceback

# Imported first, as nova-scheduler does: this module chooses native threads or
# eventlet.
from nova.cmd import scheduler as _threads  # noqa: F401  # isort: skip
from nova import config

from nova_perfvm.cloud.dry_run.scheduling import DryRun
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.dry_run import Question
from nova_perfvm.printable import first_line


def main() -> None:
    """Answer the question on standard input to standard output."""
    # Keep standard output for the answer: Nova's libraries print to it, too.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    question = Question(**json.load(sys.stdin))
    config.parse_args(sys.argv)
    try:
        answers.write(DryRun().answer(question).dumps())
    except PerfVMError as exc:
        sys.exit(str(exc))
    except Exception as exc:  # noqa: BLE001
        # Nova, or an out-of-tree filter, may raise anything.
        traceback.print_exc()
        sys.exit(f"{type(exc).__name__}: {first_line(exc)}")
    answers.close()


main()
