# SPDX-License-Identifier: Apache-2.0
"""The ``[perfvm]`` options of nova.conf."""

from __future__ import annotations

from typing import Final

from oslo_config import cfg

from nova_perfvm.documents.mistakes import DocumentError, Mistake

GROUP = cfg.OptGroup(
    "perfvm",
    title="VM classes of nova_perfvm",
    help="""
Options of nova_perfvm: which policy nova-scheduler (PerfVMFilter) and nova-api
(the validator of ``perfvm:*`` extra specs) enforce, and how strongly
PerfVMWeigher packs.
""",
)

ENFORCE: Final = "enforce"
OBSERVE: Final = "observe"

OPTS = [
    cfg.StrOpt(
        "mode",
        default=ENFORCE,
        choices=[
            (ENFORCE, "PerfVMFilter refuses hosts, and PerfVMWeigher has its say"),
            (OBSERVE, "PerfVMFilter logs what it would refuse, and lets all pass"),
        ],
        mutable=True,
        help="""
Whether PerfVMFilter and PerfVMWeigher decide where VMs go, or only watch.

With ``observe`` the filter judges and logs as ever, with "would reject" for
"rejected", and refuses no host; the weigher has no say. nova-scheduler reads
this option again when it gets SIGHUP, which replaces its workers: a request in
flight can be lost.

Related options:

* ``[filter_scheduler]enabled_filters`` must list ``PerfVMFilter``.
""",
    ),
    cfg.StrOpt(
        "policy_file",
        sample_default="/etc/nova/perfvm.yaml",
        help="""
Path of the policy file that declares the VM classes.

It is read once, when a process starts, and its SHA-256 is logged; restart
nova-scheduler and nova-api after a change. Every controller must have the same
file. With a file that is missing or has mistakes, nova-scheduler does not
start and lists every mistake; nova-api starts, and refuses every ``perfvm:``
extra spec until the file is mended.

Possible values:

* A path: that policy. ``nova-perfvm policy check FILE`` proves it beforehand.
* Not set: the built-in policy, which ``nova-perfvm policy show`` prints.

Related options:

* ``[filter_scheduler]available_filters`` must list
  ``nova_perfvm.scheduler.filters.all_filters`` beside Nova's own.
* ``[filter_scheduler]enabled_filters`` must list ``PerfVMFilter``, then
  ``PerfVMNUMATopologyFilter`` in the place of Nova's ``NUMATopologyFilter``.
""",
    ),
    cfg.BoolOpt(
        "freeze_objects",
        default=True,
        help="""
Whether PerfVMFilter, at its first request, lets Python's garbage collector
pass by what nova-scheduler holds then (``gc.freeze``), which it would search
within every request where there are many hosts.

Possible values:

* True: once in each nova-scheduler.
* False: never, as without this package.

Related options:

* ``[filter_scheduler]enabled_filters`` must list ``PerfVMFilter``.
""",
    ),
    cfg.FloatOpt(
        "weight_multiplier",
        default=1000.0,
        help="""
How strongly PerfVMWeigher packs VMs so that whole slots stay free.

It gives each host a score of -1 to 1 in steps of 0.01, times this multiplier.
With the default one step outvotes all of Nova's weighers whose multiplier is
1.0 or -1.0.

Possible values:

* Positive: VMs are packed. 0: no say. Negative: VMs are spread.

Related options:

* ``[filter_scheduler]weight_classes`` must list
  ``nova_perfvm.scheduler.weights.PerfVMWeigher``.
* The aggregate metadata ``perfvm_weight_multiplier`` overrides it for the
  hosts of an aggregate; of several values the smallest holds.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the ``[perfvm]`` group; repeated calls have no effect."""
    conf.register_group(GROUP)
    conf.register_opts(OPTS, group=GROUP)


def policy_file(conf: cfg.ConfigOpts) -> str | None:
    """Return the path of the policy file; None for the built-in policy.

    :raises DocumentError: the option is set to an empty value
    """
    register_opts(conf)
    return checked_path(conf.perfvm.policy_file)


def checked_path(path: str | None) -> str | None:
    """Return a value of ``[perfvm]policy_file`` unchanged; None if it is not set.

    :raises DocumentError: the value is empty
    """
    if path is not None and not path.strip():
        message = "is empty: give a path, or remove the line for the built-in policy"
        mistake = Mistake(("[perfvm]policy_file",), message)
        raise DocumentError("nova.conf", [mistake], "policy")
    return path


def observes(conf: cfg.ConfigOpts) -> bool:
    """Return whether ``[perfvm]mode`` is ``observe``; call it for each request.

    An invalid mode counts as ``enforce``: it can arrive with SIGHUP, and must not make
    requests fail.
    """
    register_opts(conf)
    try:
        found: bool = conf.perfvm.mode == OBSERVE
    except ValueError:
        return False
    return found


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the options for oslo-config-generator."""
    return [(GROUP, OPTS)]
