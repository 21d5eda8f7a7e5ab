# SPDX-License-Identifier: Apache-2.0
"""Filters of somebody else, as clouds have them beside Nova's."""

from nova.scheduler import filters
from nova.scheduler.filters import utils


class FailureDomainFilter(filters.BaseHostFilter):
    """Keep servers of more than two vCPUs off hosts of the first rack."""

    def host_passes(self, host_state, spec_obj):
        racks = utils.aggregate_values_from_key(host_state, "failure_domain")
        return "rack1" not in racks or spec_obj.flavor.vcpus <= 2


class HeadroomFilter(filters.BaseHostFilter):
    """Keep the host with the least memory free, where there are others."""

    def filter_all(self, filter_obj_list, spec_obj):
        hosts = sorted(filter_obj_list, key=lambda host: (host.free_ram_mb, host.host))
        return hosts[1:] if len(hosts) > 1 else hosts
