# SPDX-License-Identifier: Apache-2.0
"""Answer one question: ``python -m nova_perfvm.cloud.dry_run --config-file NOVA_CONF``.

The question comes by standard input, the answer goes to standard output, both as JSON.
"""

import json
import os
import sys

# First, as nova-scheduler does: it chooses native threads or eventlet.
from nova.cmd import scheduler as _threads  # noqa: F401  # isort: skip
from nova import config
from oslo_log import log as logging

from nova_perfvm.facts.dry_run import Question
from nova_perfvm.cloud.dry_run.scheduling import DryRun


def main() -> None:
    """Read the question, and write the answer."""
    # What Nova prints is no answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    question = Question(**json.load(sys.stdin))
    logging.set_defaults(default_log_levels=["nova=ERROR", "nova_perfvm=ERROR"])
    config.parse_args(sys.argv)
    logging.setup(config.CONF, "nova-perfvm")
    answers.write(DryRun().answer(question).dumps())
    answers.close()


main()
