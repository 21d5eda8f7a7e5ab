# SPDX-License-Identifier: Apache-2.0
"""The steps from a cloud as it is to the first VMs under a policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Final

from nova_perfvm.diagnose.survey.hosts import HostUse
from nova_perfvm.facts.snapshot import UNKNOWN
from nova_perfvm.generate import labels, options
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import Policy, VMClass
from nova_perfvm.printable import number_of

POLICY: Final = "perfvm.yaml"
# So many hosts are a beginning.
_FIRST: Final = 3


@dataclass(frozen=True)
class AdoptionStep:
    """One step.

    :ivar why: what it does, and what it does not
    :ivar commands: one a line; empty where it is no command
    """

    title: str
    why: str
    commands: str = ""


def steps(
    policy: Policy, hosts: Sequence[HostUse], findings: int
) -> Iterator[AdoptionStep]:
    """Yield the steps, in the order in which nothing breaks.

    Why it is this one is in doc/source/admin/install.rst.

    :param findings: how many the survey has
    """
    vm_class, *_ = policy.pinned_classes
    yield AdoptionStep(
        "Prove the policy",
        "Read the file, change what is not as you want it, and copy it to every "
        f"controller as {options.POLICY_FILE}.",
        f"nova-perfvm policy check {POLICY}",
    )
    yield AdoptionStep(
        "Tell Placement to grant no more than it has",
        f"{options.RETRIES.why} This is worth it without anything else.",
        f"# placement.conf of every Placement API, then restart it\n{_ini(_placement)}",
    )
    wanted, later = _settings(policy, hosts)
    yield AdoptionStep(
        "Install it on the controllers",
        "Into Nova's environment; restart nova-api, then nova-scheduler. While mode is "
        f"observe it refuses nothing.{later}",
        "pip install nova-perfvm\n# nova.conf of nova-scheduler; nova-api needs "
        f"[perfvm], too\n{_ini(wanted)}"
        f"[perfvm]\npolicy_file = {options.POLICY_FILE}\nmode = observe\n"
        "nova-perfvm-status upgrade check",
    )
    yield _flavors(vm_class)
    first = _first(hosts)
    labelled = policy.managed_hosts == "labelled"
    if scheme_of(policy).enrolls:
        labelling = " They get their label, too." if labelled else ""
        yield AdoptionStep(
            "Enroll the first hosts",
            _first_words(first) + labelling,
            "\n".join(
                f"openstack perfvm host enroll {_name(host)} --policy {POLICY}"
                for host in first
            ),
        )
    else:
        yield AdoptionStep(
            "Configure the first hosts",
            _first_words(first),
            _configure(first) + ("" if labelled else _enable(first)),
        )
        if labelled:
            yield AdoptionStep(
                "Label them",
                "From now on the filter judges these hosts, and no others.",
                "\n".join(labels.label_commands([vm_class], map(_name, first)))
                + _enable(first),
            )
    yield AdoptionStep(
        "Let the filter refuse",
        'First read what it would: "would reject" in nova-scheduler\'s log, and what '
        "this report says that enforcing would refuse.",
        "# nova.conf of nova-scheduler, then kill -HUP its process, or restart it\n"
        "[perfvm]\nmode = enforce",
    )
    told = (
        f" This report has that of {number_of(findings, 'finding')}."
        if findings
        else ""
    )
    yield AdoptionStep(
        "Move VMs in, one by one",
        "A VM that runs keeps the flavor that it was made with: a resize gives it one "
        f"of the class.{told}",
        "openstack server resize --flavor FLAVOR SERVER\n"
        "openstack server resize confirm SERVER",
    )
    yield AdoptionStep(
        "Look again",
        "What slipped past, and what there is room for; the first one for monitoring.",
        f"openstack perfvm audit --policy {POLICY}\n"
        f"openstack perfvm capacity show --policy {POLICY}",
    )


_placement: Final = (options.RETRIES,)


def _settings(
    policy: Policy, hosts: Iterable[HostUse]
) -> tuple[tuple[options.Setting, ...], str]:
    """Return what is set now, and words about what has to wait."""
    wanted = options.wanted(policy, options.SCHEDULER)
    without = sum(host.mode == "open" for host in hosts)
    waiting = options.NO_FALLBACK_QUERY
    if not without or waiting not in wanted:
        return wanted, ""
    return tuple(setting for setting in wanted if setting != waiting), (
        f" No CPU sets are seen of {number_of(without, 'host')}, and pinned VMs come "
        "to "
        "such hosts by Nova's fallback query alone. When all have some, set "
        f"[{waiting.section}]"
        f"{waiting.option} = {waiting.values[0]}."
    )


def _flavors(vm_class: VMClass) -> AdoptionStep:
    return AdoptionStep(
        "Make the flavors",
        "New flavors; those that there are stay as they are."
        if vm_class.flavors
        else "The policy lists none: say which memory sizes there are to be.",
        f"openstack perfvm flavor sync --policy {POLICY} --dry-run\n"
        f"openstack perfvm flavor sync --policy {POLICY}"
        if vm_class.flavors
        else f"openstack perfvm flavor sync --policy {POLICY} --memory-gb GB",
    )


def _ini(settings: Iterable[options.Setting]) -> str:
    """Return lines of a file, as they are pasted."""
    return "".join(options.as_ini([setting], _filters_why) for setting in settings)


def _filters_why(setting: options.Setting) -> str:
    return f"# {setting.why}\n" if setting == options.ENABLED_FILTERS else ""


def _first(hosts: Iterable[HostUse]) -> list[HostUse]:
    """Return the hosts that cost least to begin with."""
    fit = [
        host
        for host in hosts
        if host.possible and host.state == "up" and host.shape != UNKNOWN
    ]
    # Those whose CPUs are dedicated already, then those with few VMs to move.
    fit.sort(key=lambda host: (host.others, host.mode != "dedicated", host.name))
    return fit[:_FIRST]


def _first_words(first: Sequence[HostUse]) -> str:
    if not first:
        return (
            "No host that is up has room for a VM of the class: see the hosts' gaps. "
            "With one that has:"
        )
    moves = sum(host.others for host in first)
    if moves:
        return (
            f"No more hosts are empty: move {number_of(moves, 'VM')} from these first. "
            "nova-compute does not start while VMs contradict its CPU sets."
        )
    return "No VM is on them that would have to move."


def _configure(first: Sequence[HostUse]) -> str:
    return "\n".join(
        f"openstack compute service set --disable {_name(host)} nova-compute\n"
        f"{_drain(host)}"
        f"nova-perfvm host config --mode dedicated --topology {host.shape} "
        f"--memory-gb {max(1, host.memory_mb // 1024)} --policy {POLICY} "
        f"--output-dir {_name(host)}\n"
        "# its nova.conf and provider.yaml to the host, restart nova-compute"
        for host in first
    )


def _enable(first: Sequence[HostUse]) -> str:
    return "".join(
        f"\nopenstack compute service set --enable {_name(host)} nova-compute"
        for host in first
    )


def _drain(host: HostUse) -> str:
    if not host.others:
        return ""
    drain = f"openstack perfvm plan drain {_name(host)} --policy {POLICY}"
    return f"{drain}\n# then the same with --execute\n"


def _name(host: HostUse) -> str:
    return quote(host.name)
