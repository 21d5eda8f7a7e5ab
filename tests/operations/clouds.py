# SPDX-License-Identifier: Apache-2.0
"""The hosts that random operations meet, and the policies one after the other."""

import functools
import pathlib
import sys
import time

import fixtures
import yaml

from nova_perfvm.changes.enroll import plan_enroll
from nova_perfvm.cloud import converge
from nova_perfvm.cloud.api import API
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.policy import HostShape, loader
from tests.cloud import DEFAULT_FILTERS
from tests.embedded import FILTERS_WITHOUT_PERFVM
from tests.functional import base
from tests.functional.client import SDKMixin
from tests.operations.verdict import Host, Judge

PINNED_CLASS = "high-performance"


def _flavors(*memory_gb):
    return {
        "name": "hp.{vcpus}c.{memory_gb}g",
        "memory_gb": list(memory_gb),
        "root_gb": 0,
    }


class Cloud(SDKMixin, base.FunctionalTest):
    """A cloud of one scheme, whose policy can change.

    :cvar FILTER: whether nova-scheduler has PerfVMFilter
    :cvar HOSTS: what it has
    :cvar CHILDREN: children of each host
    :cvar POLICY: keys of the policy
    :cvar CLASS: keys of the high-performance class
    :cvar OPTIONS: more options of nova.conf
    :ivar most: high-performance VMs that a host may have
    :ivar sizes: vCPUs that they may have
    :ivar flavors: names of the policy's flavors
    :ivar retired: names of those that the policy has no more
    """

    CLOUD = None
    FILTER = True
    HOSTS = ()
    CHILDREN = 0
    POLICY = {}  # noqa: RUF012
    CLASS = {}  # noqa: RUF012
    OPTIONS = {}  # noqa: RUF012

    def setUp(self):
        super().setUp()
        self._began = time.monotonic()
        self.hosts = {host.name: host for host in self.HOSTS}
        self.most, self.sizes = 2, {20: 1}
        self.flavors, self.retired = [], []
        self._keys = {"flavors": _flavors(64, 128, 200)} | self.CLASS
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self._path = directory / "perfvm.yaml"
        self._load()
        self.start_cloud(
            policy_file=str(self._path),
            enabled_filters=self.enabled_filters(),
            disable_fallback_pcpu_query=not self.CHILDREN,
            options={
                ("scheduler", "enable_isolated_aggregate_filtering"): True,
                # Shelved servers stay on their hosts until they are offloaded.
                (None, "shelved_offload_time"): -1,
            }
            | self.OPTIONS,
        )
        self.api = API(self.connection("admin", "admin,member,reader"))
        for host in self.HOSTS:
            self.start(host)

    def tell(self, text):
        """Say how far a long run is."""
        took_s = time.monotonic() - self._began
        sys.__stderr__.write(f"[{type(self).__name__} {took_s:6.0f} s] {text}\n")

    def enabled_filters(self):
        return DEFAULT_FILTERS if self.FILTER else FILTERS_WITHOUT_PERFVM

    def new_judge(self):
        return Judge(self.cloud, self.hosts, self.CHILDREN)

    def start(self, host):
        self.cloud.start_configured(
            host.name, self.policy, host.mode, str(host.shape), host.memory_gb
        )

    def create_flavors(self, *_names):
        """Make the flavors of the policy, as the generator has them."""
        wanted = {flavor.name: flavor for flavor in generate_flavors(self.policy)}
        super().create_flavors(*(n for n in wanted if n not in self.flavors))
        gone = [name for name in self.flavors if name not in wanted]
        if self.FILTER:
            # It refuses what is new of them; nothing else does.
            self.retired += gone
        else:
            for name in gone:
                self.cloud.api.delete_flavor(name)
        self.flavors = list(wanted)

    def _load(self):
        document = loader.load().as_document() | self.POLICY
        document["placement"] = self.PLACEMENT
        document["classes"][PINNED_CLASS] |= self._keys
        self._path.write_text(yaml.safe_dump(document), encoding="utf-8")
        self.policy = loader.load(self._path)

    def _change(self, **keys):
        """Change the policy, the flavors and the scheduler, as the documents say."""
        self._keys |= keys
        self._load()
        self.create_flavors()
        self.cloud.restart_scheduler(self.enabled_filters())

    # Changes of the policy; each can come at any time, once.

    def changes(self):
        return [self.more_memory, self.fewer_vcpus, self.more_per_host]

    def more_memory(self):
        """Let there be VMs of another size of memory."""
        self._change(flavors=_flavors(64, 96, 128, 200))

    def fewer_vcpus(self):
        """Let new VMs have 18 vCPUs, and those that run 20."""
        self.sizes = {18: 1, 20: 1}
        self._change(vcpus=18, former_vcpus=[20])

    def more_per_host(self):
        """Let larger hosts have more VMs."""
        raise NotImplementedError


class SlotsCloud(Cloud):
    """Dedicated, shared and mixed hosts.

    The large ones have cells for more VMs than max_per_host.
    """

    PLACEMENT = "slots"
    POLICY = {"host_shape": ["2x20", "2x20x2", "4x20"]}  # noqa: RUF012
    CLASS = {"exclusive": "cell"}  # noqa: RUF012
    HOSTS = (
        Host("dedicated1", "dedicated", HostShape.parse("2x20")),
        Host("dedicated2", "dedicated", HostShape.parse("4x20"), 1000),
        Host("dedicated3", "dedicated", HostShape.parse("2x20x2")),
        Host("mixed1", "mixed", HostShape.parse("2x20")),
        Host("mixed2", "mixed", HostShape.parse("4x20"), 1000),
        Host("shared1", "shared", HostShape.parse("2x20")),
        Host("shared2", "shared", HostShape.parse("2x20")),
    )

    def more_per_host(self):
        self.most = 3
        self._change(max_per_host=3)
        for host in self.HOSTS:
            self.cloud.restart_configured(host.name, self.policy, host.mode)


class UnitsCloud(Cloud):
    """Elastic hosts of several sizes, and some for one class."""

    PLACEMENT = "units"
    CHILDREN = 4
    POLICY = {  # noqa: RUF012
        "host_shape": ["1x20", "2x20", "2x20x2", "4x20"],
        "elastic": {"slots": 4},
    }
    HOSTS = (
        Host("elastic1", "elastic", HostShape.parse("2x20")),
        Host("elastic2", "elastic", HostShape.parse("4x20"), 1000),
        Host("elastic3", "elastic", HostShape.parse("1x20")),
        Host("elastic4", "elastic", HostShape.parse("2x20x2"), slots=2),
        Host("elastic5", "elastic", HostShape.parse("2x20")),
        Host("dedicated1", "dedicated", HostShape.parse("2x20")),
        Host("shared1", "shared", HostShape.parse("2x20"), slots=0),
    )

    def start(self, host):
        super().start(host)
        self.enroll(host)

    def enroll(self, host, slots=None):
        slots = host.slots if slots is None else slots
        planner = functools.partial(plan_enroll, self.policy, slots=slots)
        converge.change_host(self.api, host.name, planner)

    def more_per_host(self):
        self.most = 4
        self._change(max_per_host=4)
        self.enroll(self.hosts["elastic2"], slots=4)


# Few CPUs for general VMs, so that few of them fill a host.
_NO_OVERCOMMIT = {(None, "cpu_allocation_ratio"): 1.0}


class CrampedSlotsCloud(Cloud):
    """Hosts on which a VM finds no room although there is some on each.

    A NUMA node of the small dedicated ones has memory for the smallest VM only.
    """

    PLACEMENT = "slots"
    OPTIONS = _NO_OVERCOMMIT
    HOSTS = (
        Host("small1", "dedicated", HostShape.parse("2x20"), 220),
        Host("small2", "dedicated", HostShape.parse("2x20"), 220),
        Host("large1", "dedicated", HostShape.parse("2x20"), 450),
        Host("large2", "dedicated", HostShape.parse("2x20"), 450),
        *(Host(f"shared{n}", "shared", HostShape.parse("1x8"), 64) for n in (1, 2, 3)),
    )


class CrampedUnitsCloud(UnitsCloud):
    """Elastic hosts, each of which is one class's as soon as it has a VM."""

    CHILDREN = 2
    POLICY = {}  # noqa: RUF012
    OPTIONS = _NO_OVERCOMMIT
    HOSTS = tuple(
        Host(f"elastic{n}", "elastic", HostShape.parse("2x20"), 450)
        for n in range(1, 5)
    )
