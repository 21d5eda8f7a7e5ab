# SPDX-License-Identifier: Apache-2.0
"""Read the policy when nova-scheduler starts, and log the policy and the mode."""

from __future__ import annotations

from nova import conf as nova_conf
from oslo_log import log as logging

from nova_perfvm import conf
from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.policy import Policy, loader
from nova_perfvm.printable import first_line

LOG = logging.getLogger(__name__)


def read_policy(reader: str) -> Policy:
    """Return the policy that nova.conf names, or the built-in one.

    :param reader: name of the filter or weigher, for the log
    :raises SystemExit: the file has mistakes or cannot be read, or the mode is
        invalid.  Each mistake is logged as a line before, and the process ends with
        the list of mistakes instead of a traceback
    """
    try:
        path = conf.policy_file(nova_conf.CONF)
        policy = loader.load(path)
        mode = nova_conf.CONF.perfvm.mode
    except (DocumentError, ValueError) as exc:
        said = str(exc) if isinstance(exc, DocumentError) else first_line(exc)
        for line in said.splitlines():
            LOG.critical(line)
        raise SystemExit(said) from exc
    LOG.info(
        "%s judges by %s, sha256 %s, classes %s; managed_hosts is %s, [perfvm]mode %s",
        reader,
        path or f"the {loader.BUILT_IN}",
        policy.digest,
        ", ".join(policy.by_name),
        policy.managed_hosts,
        mode,
    )
    return policy
