# SPDX-License-Identifier: Apache-2.0
"""What happens when nova-scheduler starts: the policy is read, the mode is logged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nova import conf as nova_conf
from oslo_log import log as logging

from nova_perfvm import conf
from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.policy import Policy, loader

LOG = logging.getLogger(__name__)

_MEANINGS: Final = {
    conf.ENFORCE: "refuses what runs against the policy",
    conf.OBSERVE: "logs what it would refuse, and refuses nothing",
}


def read_policy(reader: str) -> Policy:
    """Return the policy that nova.conf names, or the built-in one.

    :param reader: who enforces it, for the log
    :raises SystemExit: when the file cannot be used.  Every mistake is in the
        log by then, a line each, and the process ends as for any other mistake
        in its configuration: with that list, not with a traceback.
    """
    try:
        path = conf.policy_file(nova_conf.CONF)
        policy = loader.load(path)
    except DocumentError as exc:
        message = str(exc)
    else:
        LOG.info(
            "%s judges by %s, sha256 %s, classes %s",
            reader,
            path or f"the {loader.BUILT_IN}",
            policy.digest,
            ", ".join(policy.by_name),
        )
        return policy
    for line in message.splitlines():
        LOG.critical(line)
    raise SystemExit(message)


def log_whom_it_judges(policy: Policy) -> None:
    """Log which hosts the filter judges, and in which mode; later changes, too.

    :raises SystemExit: when the mode is none, as for a policy with mistakes
    """
    try:
        mode = nova_conf.CONF.perfvm.mode
    except ValueError as exc:
        LOG.critical(exc)
        raise SystemExit(str(exc)) from exc
    if policy.managed_hosts == "all":
        hosts = (
            "all hosts (managed_hosts: all), so that a pinned VM of a flavor without "
            "perfvm:class, a tenant's own too, comes to none that has slots"
        )
    else:
        hosts = (
            "hosts with a perfvm:class label (managed_hosts: labelled), and leaves "
            "others alone"
        )
    LOG.info(
        "PerfVMFilter judges %s; [perfvm]mode is %s: it %s",
        hosts,
        mode,
        _MEANINGS[mode],
    )
    nova_conf.CONF.register_mutate_hook(log_change_of_mode)


def log_change_of_mode(
    _conf: Any, fresh: Mapping[tuple[str | None, str], tuple[Any, Any]]
) -> None:
    """Log that nova.conf has another mode, when it is read again.

    :param fresh: {(group, option): (value before, value now)}
    """
    if ("perfvm", "mode") not in fresh:
        return
    try:
        mode = nova_conf.CONF.perfvm.mode
    except ValueError as exc:
        LOG.error(  # noqa: TRY400 - an operator's mistake needs no traceback
            "PerfVMFilter %s until this is mended: %s", _MEANINGS["enforce"], exc
        )
        return
    LOG.warning("[perfvm]mode is %s now: PerfVMFilter %s", mode, _MEANINGS[mode])
