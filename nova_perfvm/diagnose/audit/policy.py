# SPDX-License-Identifier: Apache-2.0
"""Check that a policy suits a cloud: scheme, flavors, and VMs that it would refuse."""

from collections.abc import Iterator

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit.enforcing import refused_flavors
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.findings import Finding
from nova_perfvm.placement.host_schemes import names_of
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import advice


def check_policy(subject: Subject) -> Iterator[Finding]:
    """List the policy's costs, and the enrolled hosts that its scheme does not suit."""
    policy = subject.policy
    yield from advice(policy)
    if not scheme_of(policy).enrolls:
        needed = names_of(lambda other: other.scheme.enrolls)
        for host in subject.elastic:
            yield Finding.of(
                codes.NOT_UNITS,
                host.host,
                f"the policy says placement: {policy.placement}, and enrolled hosts "
                f"need {needed}",
                f"name the policy file with --policy, or set placement: {needed}",
            )


def check_sync(subject: Subject) -> Iterator[Finding]:
    """List the changes of ``flavor sync``, or the reasons for its refusal."""
    sync = subject.sync
    for refusal in sync.refusals:
        yield Finding.of(codes.FLAVORS_REFUSED, "flavors", refusal, sync.command)
    for change in () if sync.refusals else sync.changes:
        words = f"would {change}"
        yield Finding.of(codes.FLAVORS_DIFFER, "flavors", words, sync.command)


def check_refused(subject: Subject) -> Iterator[Finding]:
    """List the flavors of running VMs that the filter would refuse."""
    for refused in refused_flavors(subject):
        yield Finding.of(
            codes.FLAVORS_TO_REFUSE,
            f"flavor {refused.flavor}",
            str(refused),
            "managed_hosts: labelled in the policy, which leaves hosts without a label "
            "alone; or give the flavor a class (openstack flavor set --property "
            f"{const.CLASS_KEY}=CLASS FLAVOR), and resize its VMs to it",
        )
