# SPDX-License-Identifier: Apache-2.0
"""Names that the outside world sees: keys, traits, resource classes, codes.

Each is stable: operators' scripts, flavors and alerts are written against it.
"""

from typing import Final

# The extra spec that names a flavor's class, and the aggregate metadata key
# that reserves hosts for one.  The namespace is not optional: an extra spec
# without a scope becomes an aggregate requirement to Nova's
# AggregateInstanceExtraSpecsFilter.
NAMESPACE: Final = "perfvm"
CLASS_KEY: Final = "perfvm:class"
# Aggregate metadata that says who made the aggregate, and so may delete it.
CREATED_BY_KEY: Final = "perfvm:created_by"
# The aggregate, without hosts, that has the digest of the policy by which the cloud
# was changed, the name of its file, and when that was recorded.
POLICY_AGGREGATE: Final = "perfvm-policy"
POLICY_KEY: Final = "perfvm:policy"
POLICY_NAME_KEY: Final = "perfvm:policy_name"
POLICY_AT_KEY: Final = "perfvm:policy_at"

# Nova's own extra specs and image properties that a class is made of.
CPU_POLICY: Final = "hw:cpu_policy"
CPU_THREAD_POLICY: Final = "hw:cpu_thread_policy"
EMULATOR_THREADS: Final = "hw:emulator_threads_policy"
NUMA_NODES: Final = "hw:numa_nodes"
MEM_PAGE_SIZE: Final = "hw:mem_page_size"
VIF_MULTIQUEUE: Final = "hw:vif_multiqueue_enabled"
IMAGE_VIF_MULTIQUEUE: Final = "hw_vif_multiqueue_enabled"
IMAGE_VIF_MODEL: Final = "hw_vif_model"

# The number on Launchpad of Nova's bug that live migrations lose the limits of a claim.
LP_LOST_LIMITS: Final = 2153425
# ... that nova-compute looks at no PCI pools when it claims for a VM without devices.
LP_NO_PCI_POOLS: Final = 2144660

# What Nova calls the hypervisor of bare-metal nodes.
IRONIC: Final = "ironic"

# What pip installs: no index has the package before its first release.
PACKAGE: Final = "CHECKOUT"

# Nova's codes for "a page size by kind" in InstanceNUMACell.pagesize.
PAGE_SMALL: Final = -1
PAGE_LARGE: Final = -2
PAGE_ANY: Final = -3
PAGE_KINDS: Final = {"small": PAGE_SMALL, "large": PAGE_LARGE, "any": PAGE_ANY}

# The image property that keeps the names of those that ``image sync`` has set.
IMAGE_RECORD: Final = "perfvm_properties"

# What Placement counts, and tells hosts apart by (CUSTOM_ is for all that is
# not in os-resource-classes and os-traits).

# Placement's own names: CPUs that VMs own, CPUs that they share, and disk.
PCPU: Final = "PCPU"
VCPU: Final = "VCPU"
DISK: Final = "DISK_GB"
# One VM of a pinned class on a host; max_unit is 1.
RC_SLOT: Final = "CUSTOM_PERFVM_SLOT"
# A share of an elastic host's child provider; see nova_perfvm.placement.schemes.units.
RC_UNIT: Final = "CUSTOM_PERFVM_UNIT"
# N, the units of each child.  No key of the policy: flavors are written for it,
# those that servers have embedded, too, and two that differ in it fit one child.
UNITS_PER_CHILD: Final = 1000
# CPUs and memory of one NUMA node of a host; see nova_perfvm.placement.schemes.cells.
RC_CELL_CPU: Final = "CUSTOM_PERFVM_CELL_CPU"
RC_CELL_MEMORY: Final = "CUSTOM_PERFVM_CELL_MEMORY_MB"
# What child providers of enrolled hosts have, and nothing else has.
CHILD_CLASSES: Final = frozenset({RC_UNIT, RC_CELL_CPU, RC_CELL_MEMORY})
RC_READ_IOPS: Final = "CUSTOM_PERFVM_READ_IOPS"
RC_WRITE_IOPS: Final = "CUSTOM_PERFVM_WRITE_IOPS"
# The host offers slots: VMs that share CPUs stay away.
TRAIT_HIGH_PERFORMANCE: Final = "CUSTOM_PERFVM_HIGH_PERFORMANCE"
# The host is enrolled: VMs without units stay away (isolated aggregate).  What
# follows is _ and the number of its children, so that a flavor that was made for
# another number finds no host.
TRAIT_ELASTIC: Final = "CUSTOM_PERFVM_ELASTIC"
# What the names of the project's traits and resource classes begin with.
CUSTOM_PREFIX: Final = "CUSTOM_PERFVM_"
# Followed by the child's letter.
TRAIT_CHILD: Final = "CUSTOM_PERFVM_CHILD_"
# The host's NUMA nodes are child providers; these have it, too.
TRAIT_CELLS: Final = "CUSTOM_PERFVM_CELLS"
# What a child's name ends in, before the number of the host's NUMA node.
CELL_SUFFIX: Final = "cell_"
# Physical networks, in name only, by which nova-compute is told a NUMA node: each has
# its affinity to one, and the scheduler names it in the limits of a claim.
CELL_PHYSNET: Final = "perfvm_cell_"
# One letter names a child, in flavors, too: more slots has no elastic host.
CHILD_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"

# Reason codes: dotted, stable, never reused.  Those of the rules are in the rules'
# files (nova_perfvm.rules).  Here is what other layers refuse for, which have no
# codes of their own; explain does.

# The compute service is not one that the scheduler may use.
SERVICE_DISABLED: Final = "service.disabled"
SERVICE_DOWN: Final = "service.down"
# The server is there: only a resize may stay.
NOVA_SAME_HOST: Final = "nova.same_host"
# A filter of nova-scheduler for which explain has no words but its name.
NOVA_FILTER: Final = "nova.filter"
# The request names other hosts, or excludes this one.
NOVA_DESTINATION: Final = "nova.destination"
# nova-scheduler finds no compute node of the host.
NOVA_NO_STATE: Final = "nova.no_host_state"
# Not in the zone that is asked for; an aggregate is for other projects.
NOVA_AVAILABILITY_ZONE: Final = "nova.availability_zone"
NOVA_TENANT_AGGREGATE: Final = "nova.tenant_aggregate"
# The filter of the server group's policy is not enabled.
NOVA_GROUP_POLICY: Final = "nova.group_policy"
# ServerGroupAffinityFilter, or the other, keeps servers of a group together, or apart.
NOVA_GROUP_AFFINITY: Final = "nova.group_affinity"
NOVA_GROUP_ANTI_AFFINITY: Final = "nova.group_anti_affinity"
# NUMATopologyFilter finds no cells where no rule has looked for any.
NOVA_NUMA_TOPOLOGY: Final = "nova.numa_topology"
# PciPassthroughFilter finds no devices; NUMATopologyFilter none where CPUs are free.
NOVA_PCI: Final = "nova.pci_passthrough"
NOVA_PCI_NUMA: Final = "nova.pci_numa"
# nova-compute does not know its NUMA nodes by the names that claims have.
NOVA_NODES_UNNAMED: Final = "nova.nodes_unnamed"
# Other filters of Nova, whose reasons have what each expected and found.
FILTER_CODES: Final = {
    "AggregateImagePropertiesIsolation": "nova.aggregate_image_properties",
    "AggregateInstanceExtraSpecsFilter": "nova.aggregate_extra_specs",
    "AggregateTypeAffinityFilter": "nova.aggregate_flavors",
    "ComputeCapabilitiesFilter": "nova.compute_capabilities",
    "DifferentHostFilter": "nova.different_host",
    "ImagePropertiesFilter": "nova.image_properties",
    "IoOpsFilter": "nova.io_ops",
    "IsolatedHostsFilter": "nova.isolated_hosts",
    "NumInstancesFilter": "nova.num_instances",
    "SameHostFilter": "nova.with_server",
}
# A filter lacks a fact of the host or the request; it refuses nothing.
NOT_JUDGED: Final = "nova.not_judged"
# The host has no resource provider.
PLACEMENT_NO_PROVIDER: Final = "placement.no_provider"
# No provider of the host has the resource class.
PLACEMENT_NO_INVENTORY: Final = "placement.no_inventory"
# The inventory is too small, too full, or gives no such amount at once.
PLACEMENT_RESOURCE: Final = "placement.resource"
# The same for units of elastic hosts, which have their own arithmetic.
PLACEMENT_UNITS: Final = "placement.units"
# The same for the NUMA nodes of hosts.
PLACEMENT_CELLS: Final = "placement.cells"
PLACEMENT_TRAIT_MISSING: Final = "placement.trait_missing"
PLACEMENT_TRAIT_FORBIDDEN: Final = "placement.trait_forbidden"
# An aggregate of the host wants a trait that is not asked for.
PLACEMENT_ISOLATED: Final = "placement.isolated_aggregate"
# The host is in no aggregate of the project.
PLACEMENT_TENANT: Final = "placement.tenant_aggregate"
# Each group of the request fits, but not all at once.
PLACEMENT_GROUPS: Final = "placement.groups"
# Placement itself was asked, and says no where this arithmetic says yes.
PLACEMENT_REFUSED: Final = "placement.refused"
# No API shows the host's NUMA nodes, so the rules cannot judge it.
CELLS_UNKNOWN: Final = "cells.unknown"
# No API shows the host's PCI devices.
PCI_UNKNOWN: Final = "pci.unknown"

OUTER_CODES: Final = frozenset(
    {
        SERVICE_DISABLED,
        SERVICE_DOWN,
        CELLS_UNKNOWN,
        NOVA_SAME_HOST,
        NOVA_FILTER,
        NOVA_DESTINATION,
        NOVA_NO_STATE,
        NOVA_AVAILABILITY_ZONE,
        NOVA_TENANT_AGGREGATE,
        NOVA_GROUP_POLICY,
        NOVA_GROUP_AFFINITY,
        NOVA_GROUP_ANTI_AFFINITY,
        NOVA_NUMA_TOPOLOGY,
        NOVA_NODES_UNNAMED,
        NOVA_PCI,
        NOVA_PCI_NUMA,
        PCI_UNKNOWN,
        *FILTER_CODES.values(),
        PLACEMENT_NO_PROVIDER,
        PLACEMENT_NO_INVENTORY,
        PLACEMENT_RESOURCE,
        PLACEMENT_UNITS,
        PLACEMENT_CELLS,
        PLACEMENT_TRAIT_MISSING,
        PLACEMENT_TRAIT_FORBIDDEN,
        PLACEMENT_ISOLATED,
        PLACEMENT_TENANT,
        PLACEMENT_GROUPS,
        PLACEMENT_REFUSED,
    }
)
