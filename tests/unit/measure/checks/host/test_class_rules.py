# SPDX-License-Identifier: Apache-2.0
"""The check of a host against the policy's classes."""

from tests.unit.measure import hosts
from tests.unit.measure.checks.host.case import (
    FAIL,
    FIRST,
    PASS,
    POLICY,
    HostCase,
    view,
    with_class,
)


def with_vms(vms=2, **xml):
    return hosts.with_domains(hosts.roomy(vms=vms), **xml)


class ClassRulesTest(HostCase):
    def test_who_is_too_many(self):
        foreign = hosts.general_xml(3, "40-41")
        metadata = foreign[foreign.index("  <metadata>") : foreign.index("  <memory u")]
        unmade = foreign.replace(metadata, "")
        # libvirt does not run it.
        stray = {"/proc/900/comm": "qemu-kvm\n", "/proc/900/cmdline": "qemu\0"}
        self.assert_cases(
            "class_rules",
            (FAIL, "host", "3 of class", with_vms(vm3=hosts.domain_xml(3))),
            (FAIL, "host", "on the host: instance-00000003", with_vms(vm3=foreign)),
            # Nova did not make it.
            (FAIL, "host", "on the host: instance-00000003", with_vms(vm3=unmade)),
            (FAIL, "host", "process 900", stray),
        )
        near = with_vms(1, vm2=hosts.general_xml(2, "20-41"))
        apart = with_vms(1, vm2=hosts.general_xml(2, "20-39,41"))
        self.assert_cases(
            "class_rules",
            (PASS, "*", "", apart),
            (FAIL, "host", "on node 0: instance-00000002", near),
            policy=with_class(exclusive="cell"),
        )

    def test_sizes(self):
        for changes, status in (
            ({"vcpus": 16}, FAIL),
            ({"vcpus": 16, "former_vcpus": (20,)}, PASS),
        ):
            case = (status, "host", FIRST if status is FAIL else "", {})
            self.assert_cases("class_rules", case, policy=with_class(**changes))

    def test_classes_by_older_metadata(self):
        xml = hosts.domain_xml(1)
        specs = xml[xml.index("<nova:extraSpecs>") : xml.index("      </nova:flavor>")]
        old = xml.replace(specs, "").replace("hp.20c.128g", "{}")
        for flavor, policy, words in (
            ("hp.20c.128g", POLICY, "2 of class high"),
            # One pinned class has VMs of that size.
            ("whatever", POLICY, "2 of class high"),
            ("whatever", with_class(vcpus=16), "high-performance: instance-00000002"),
        ):
            status = PASS if policy is POLICY else FAIL
            case = (status, "host", words, with_vms(vm1=old.format(flavor)))
            self.assert_cases("class_rules", case, policy=policy)

    def test_nova_knows_the_class(self):
        xml = hosts.domain_xml(1, specs={"perfvm:class": "general"})
        host = with_vms(vm1=xml)
        self.assert_cases("class_rules", (FAIL, "host", "beside", host))
        self.assert_cases("class_rules", (PASS, "*", "", host), nova=view())
