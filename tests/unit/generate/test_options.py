# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import testtools
from nova import conf as nova_conf
from oslo_config import cfg
from placement import conf as placement_conf

from nova_perfvm.generate import options
from nova_perfvm.placement.schemes import SCHEMES
from nova_perfvm.placement.settings import (
    COMPUTE,
    FALLBACK_QUERY,
    ISOLATED_AGGREGATES,
    NO_FALLBACK_QUERY,
    PLACEMENT,
    SCHEDULER,
)
from nova_perfvm.policy import loader


def registered():
    """Return Nova's and Placement's own options, by the service that reads them."""
    placement = cfg.ConfigOpts()
    placement_conf.register_opts(placement)
    return {
        SCHEDULER: nova_conf.CONF,
        COMPUTE: nova_conf.CONF,
        PLACEMENT: placement,
    }


class EnforcedTest(testtools.TestCase):
    def test_not_by_what_a_file_says(self):
        key = ("filter_scheduler", "enabled_filters")
        mode = ("perfvm", "mode")
        for found, why in (
            ({}, None),
            ({key: "ComputeFilter, PerfVMFilter"}, None),
            ({mode: "enforce"}, None),
            ({key: "ComputeFilter,PerfVMNUMATopologyFilter"}, "enabled_filters lacks"),
            ({key: "PerfVMFilter", mode: "observe"}, "mode is observe"),
        ):
            said = list(options.not_enforced(found))
            self.assertEqual(why is not None, bool(said), found)
            self.assertIn(why or "", "".join(said))


class TableTest(testtools.TestCase):
    def test_each_option_is_one_of_nova_or_placement_with_its_default(self):
        services = registered()
        for setting in options.TABLE:
            conf = services[setting.service]
            group = conf if setting.section == "DEFAULT" else conf[setting.section]
            self.assertIn(setting.option, group, str(setting))
            if setting.default:
                opt = conf._get_group(setting.section)._opts[setting.option]["opt"]
                self.assertEqual(str(opt.default), setting.default, str(setting))

    def test_a_policy_wants_each_option_once(self):
        for placement in SCHEMES:
            policy = replace(loader.load(), placement=placement)
            for service in (SCHEDULER, COMPUTE, PLACEMENT):
                keys = [setting.key for setting in options.wanted(policy, service)]
                self.assertEqual(sorted(set(keys)), sorted(keys))

    def test_what_is_wanted_is_no_fault_however_it_is_written(self):
        isolated = ISOLATED_AGGREGATES
        for setting, value, stated in (
            *((isolated, value, None) for value in ("True", "true", "1", "on", "YES")),
            (isolated, "False", "is False"),
            (isolated, "0", "is 0"),
            (isolated, None, "is not set, which means False"),
            (FALLBACK_QUERY, None, None),
            (NO_FALLBACK_QUERY, None, "which means False"),
        ):
            fault = setting.fault(value)
            self.assertEqual(stated is None, fault is None, value)
            self.assertIn(stated or "", fault or "")
