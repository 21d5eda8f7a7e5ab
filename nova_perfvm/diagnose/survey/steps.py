# SPDX-License-Identifier: Apache-2.0
"""The steps from a cloud as it is to the first VMs under a policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from shlex import quote
from typing import Final, NamedTuple

from nova_perfvm import constants as const
from nova_perfvm.diagnose.survey.hosts import HostUse
from nova_perfvm.generate import labels, options
from nova_perfvm.placement import commands
from nova_perfvm.placement.host_schemes import host_scheme_of
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.placement.settings import NO_FALLBACK_QUERY, SCHEDULER, Setting
from nova_perfvm.policy import Policy

POLICY: Final = "perfvm.yaml"
# The number of hosts to begin with.
_FIRST: Final = 3


class AdoptionStep(NamedTuple):
    """One step.

    :ivar why: effects of the step, and effects to expect from a later step
    :ivar commands: one a line
    """

    title: str
    why: str
    commands: str


def steps(
    policy: Policy,
    hosts: Sequence[HostUse],
    emptied: Sequence[str],
    max_ratio: float | None,
) -> Iterator[AdoptionStep]:
    """Yield the steps in a safe order.

    doc/source/admin/install.rst gives the reasons for the order.

    :param emptied: see :meth:`.survey.Survey.steps`
    """
    yield AdoptionStep(
        "Prove the policy",
        "Read the file, change what is not as you want it, and copy it to every "
        f"controller as {options.POLICY_FILE}.",
        f"nova-perfvm policy check {POLICY}",
    )
    yield AdoptionStep(
        "Tell Placement to grant no more than it has",
        f"{options.RETRIES.why} This option helps even without the other steps.",
        "# placement.conf of every Placement API, then restart it\n"
        f"{options.as_ini([options.RETRIES])}",
    )
    now = tuple(_now(policy, hosts))
    later = (
        " Pinned VMs come to hosts without CPU sets by Nova's fallback query alone: "
        f"set {NO_FALLBACK_QUERY} = True when all hosts have some."
    )
    yield AdoptionStep(
        "Install it on the controllers",
        "Into Nova's environment; restart nova-api, then nova-scheduler. While mode is "
        "observe it refuses nothing."
        + ("" if now == options.wanted(policy, SCHEDULER) else later),
        f"pip install {const.PACKAGE}  # the directory of the clone\n"
        "# nova.conf of nova-scheduler; nova-api needs "
        f"[perfvm], too\n{options.as_ini(now, _why)}"
        f"[perfvm]\npolicy_file = {options.POLICY_FILE}\nmode = observe\n"
        "nova-perfvm-status upgrade check",
    )
    sizes = "" if policy.pinned_classes[0].flavors else " --memory-gb GB"
    sync = f"openstack perfvm flavor sync --policy {POLICY}{sizes}"
    yield AdoptionStep(
        "Make the flavors",
        "New flavors; existing flavors stay as they are.",
        f"{sync} --dry-run\n{sync}",
    )
    if first := _first(hosts, emptied):
        yield from _hosts(policy, first, max_ratio)
    yield AdoptionStep(
        "Let the filter refuse",
        'First read "would reject" in nova-scheduler\'s log, and the flavors that this '
        "report lists as refused by enforcing. Running VMs keep their flavor: "
        "a resize gives them one of the class.",
        "# nova.conf of nova-scheduler; then restart it on one controller at a time\n"
        "[perfvm]\nmode = enforce\n"
        f"openstack perfvm audit --policy {POLICY}",
    )


def _why(setting: Setting) -> str:
    return f"# {setting.why}\n"


def _now(policy: Policy, hosts: Iterable[HostUse]) -> Iterator[Setting]:
    """Yield the options to set before the first host is changed."""
    without = any(host.mode == "open" for host in hosts)
    for setting in options.wanted(policy, SCHEDULER):
        if setting != NO_FALLBACK_QUERY or not without:
            yield setting


def _first(hosts: Iterable[HostUse], emptied: Sequence[str]) -> list[HostUse]:
    """Return the hosts that cost least to begin with."""
    rank = {name: number for number, name in enumerate(emptied)}
    fit = [
        host
        for host in hosts
        if host.possible and host.view.state == "up" and host.view.compute.shape
        if not host.others or host.view.host in rank
    ]
    # Hosts without other VMs first, among them hosts with dedicated CPUs.
    fit.sort(
        key=lambda host: (
            host.others > 0,
            host.mode != "dedicated",
            rank.get(host.view.host, 0),
            host.view.name,
        )
    )
    return fit[:_FIRST]


def drain(host: str, max_ratio: float | None) -> str:
    """Return the command that plans how a host is emptied."""
    ratio = "" if max_ratio is None else f" --max-ratio {max_ratio:g}"
    return f"openstack perfvm plan drain {quote(host)} --policy {POLICY}{ratio}"


def _hosts(
    policy: Policy, first: Sequence[HostUse], max_ratio: float | None
) -> Iterator[AdoptionStep]:
    names = [quote(host.view.host) for host in first]
    why = "The hosts with the fewest VMs to move. VMs have to leave a host first"
    if host_scheme_of(policy).by_slots:
        yield AdoptionStep("Enroll the first hosts", f"{why}.", _enroll(policy, first))
        return
    yield AdoptionStep(
        "Configure the first hosts",
        f"{why}: nova-compute does not start while VMs contradict its CPU sets.",
        "\n".join(_configure(host, max_ratio) for host in first),
    )
    label: tuple[str, ...] = ()
    why = "The filter judges all hosts."
    if policy.managed_hosts == "labelled":
        label = labels.label_commands(policy.pinned_classes[:1], names)
        why = "The filter judges hosts with a label, and no others."
    if scheme_of(policy).enrolls:
        label = (_enroll(policy, first),)
        why = "Placement counts their NUMA nodes, and lets no other VM onto them."
    enable = (f"openstack compute service set --enable {n} nova-compute" for n in names)
    yield AdoptionStep(
        "Let them take VMs",
        why,
        "\n".join((*label, *enable)),
    )


def _enroll(policy: Policy, hosts: Iterable[HostUse]) -> str:
    option = f"--policy {POLICY}"
    return "\n".join(commands.enroll(policy, h.view.host, option) for h in hosts)


def _configure(host: HostUse, max_ratio: float | None) -> str:
    name = quote(host.view.host)
    return (
        f"openstack compute service set --disable {name} nova-compute\n"
        f"{drain(host.view.host, max_ratio)}\n# then the same with --execute\n"
        f"nova-perfvm host config --mode dedicated --topology {host.shape} "
        f"--memory-gb {host.memory_gb} --policy {POLICY} --output-dir {name}\n"
        "# its nova.conf and provider.yaml to the host, restart nova-compute"
    )
