# SPDX-License-Identifier: Apache-2.0
"""nova-api refuses invalid extra specs; nova-scheduler refuses invalid flavors."""

from tempest import config
from tempest.lib import decorators
from tempest.lib import exceptions as lib_exc
from tempest.lib.common.utils import data_utils, test_utils

from nova_perfvm import constants as const
from nova_perfvm.tempest_plugin.tests import base

CONF = config.CONF


class FlavorsTest(base.PerfVMTest):
    def make_flavor(self, **changes):
        """Create a copy of the high-performance flavor without extra specs."""
        like = self.flavor_of[CONF.perfvm.high_performance_flavor]
        wish = {name: like[name] for name in ("vcpus", "ram", "disk")} | changes
        name = data_utils.rand_name(
            prefix=CONF.resource_name_prefix, name=self.__class__.__name__
        )
        flavor = self.flavors.create_flavor(name=name, **wish)["flavor"]
        self.addCleanup(
            test_utils.call_and_ignore_notfound_exc,
            self.flavors.delete_flavor,
            flavor["id"],
        )
        return flavor["id"]

    def specs(self, flavor):
        return self.flavors.list_flavor_extra_specs(flavor)["extra_specs"]

    @decorators.idempotent_id("3b935692-c240-4c83-9d1d-7bc27faccc92")
    def test_typos(self):
        """nova-api refuses unknown classes and unknown keys."""
        flavor = self.make_flavor()
        key, name = const.CLASS_KEY, self.specs(self.high_performance)[const.CLASS_KEY]
        for wrong in (
            {key: f"{name}x"},
            {key: name.upper()},
            {key: ""},
            {f"{key}s": name},
        ):
            self.assertRaises(
                lib_exc.BadRequest,
                self.flavors.set_flavor_extra_spec,
                flavor,
                **wrong,
            )
        self.assertEqual({}, self.specs(flavor))

    @decorators.idempotent_id("d7a54cdc-9445-4412-aa49-ee3a71f7202e")
    def test_wrong_size(self):
        """A VM of the class with another number of vCPUs finds no host."""
        host, server = self.boot_on_empty_host(self.high_performance)
        self.delete(server["id"])
        # A smaller VM, for which the host has enough CPUs.
        flavor = self.make_flavor(vcpus=CONF.perfvm.vcpus // 2 or 2)
        self.flavors.set_flavor_extra_spec(flavor, **self.specs(self.high_performance))
        self.boot_refused(flavor, host)
        # A VM of the right size fits: the size was the reason.
        self.boot(self.high_performance, host)
