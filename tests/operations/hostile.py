# SPDX-License-Identifier: Apache-2.0
"""What tenants try who want to be where they may not be.

All of it is refused with the filter, or does no harm.  Without it, Placement alone
refuses what brings no units to elastic hosts; the rest is left out there, as
doc/source/admin/guarantees.rst says that the filter alone sees to it:

* an image that names the trait of elastic hosts,
* pinned VMs of no class, by their flavor or by their image,
* flavors that name a class and do not take its slot or its units,
* sizes that the policy has no more.

Hosts are forced on none of these with slots: there, nobody looks.
"""

from tests.operations.steps import RUNS, Steps, UnexpectedError

PLAIN, PINNED, BARE = "plain", "pinned", "bare"
_PINNED = {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "1"}
FLAVORS = {
    PLAIN: (2, {}),
    PINNED: (4, _PINNED),
    BARE: (
        20,
        _PINNED
        | {"hw:vif_multiqueue_enabled": "true", "perfvm:class": "high-performance"},
    ),
}
TRAITS = (
    "CUSTOM_PERFVM_ELASTIC_4",
    "CUSTOM_PERFVM_ELASTIC_2",
    "CUSTOM_PERFVM_HIGH_PERFORMANCE",
)


class HostileSteps(Steps):
    """Operations that have to be refused."""

    def __init__(self, test, rng, judge):
        super().__init__(test, rng, judge)
        for name, (vcpus, specs) in FLAVORS.items():
            self.cloud.create_flavor(name, vcpus, 4096, 0, specs)
        # Placement answers 400 to a trait that it does not know.
        for trait in TRAITS:
            test.api.placement("PUT", f"/traits/{trait}")

    def refused(self, method, *args, **options):
        """Look that an operation is refused."""
        if not method(*args, **options):
            return False
        raise UnexpectedError(f"{self.told} was not refused")

    def _image(self):
        trait = self.rng.choice(TRAITS)
        return self.cloud.create_image(**{f"trait:{trait}": "required"})

    def boot_plain_on_elastic_host(self):
        where = ({}, {"host": self.host()}, {"az": f"nova:{self.host()}"})
        return self.refused(self.boot, PLAIN, **self.rng.choice(where))

    def boot_with_image_of_trait(self):
        flavor = self.rng.choice((PLAIN, self.flavor("g."), self.flavor("hp.")))
        return self.refused(self.boot, flavor, image=self._image())

    def rebuild_with_image_of_trait(self):
        server = self.pick(*RUNS)
        if server and server.id in self._evacuated:
            # Nova looks among the new host's providers for those of the old one,
            # which the server has, too, until its host is back: ValueError.
            return False
        return self.refused(self.act, self.servers.rebuild, server, self._image())

    def boot_what_is_no_class(self):
        image = self.cloud.create_image(hw_cpu_policy="dedicated")
        flavors = [PINNED, BARE, *self.test.retired]
        wanted = [(flavor, {}) for flavor in flavors] + [(PLAIN, {"image": image})]
        flavor, options = self.rng.choice(wanted)
        return self.refused(self.boot, flavor, **options)

    def resize_to_what_is_no_class(self):
        flavor = self.rng.choice((PINNED, BARE))
        server = self.pick(*RUNS)
        return self.refused(self.act, self.servers.resize, server, flavor)


WITH_FILTER = {
    HostileSteps.boot_with_image_of_trait: 1,
    HostileSteps.rebuild_with_image_of_trait: 1,
    HostileSteps.boot_what_is_no_class: 4,
    HostileSteps.resize_to_what_is_no_class: 1,
}
WITH_UNITS = {HostileSteps.boot_plain_on_elastic_host: 1}
