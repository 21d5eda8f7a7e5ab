# SPDX-License-Identifier: Apache-2.0
"""Public names: keys, traits, resource classes and codes.

They are stable: operators' scripts, flavors and alerts depend on them.
"""

from typing import Final

# The extra spec that names a flavor's class, and the aggregate metadata key that
# reserves hosts for a class.  It needs the namespace: Nova's
# AggregateInstanceExtraSpecsFilter takes an extra spec without one for a requirement on
# aggregates.
NAMESPACE: Final = "perfvm"
CLASS_KEY: Final = "perfvm:class"
# Aggregate metadata that names the creator, which alone may delete the aggregate.
CREATED_BY_KEY: Final = "perfvm:created_by"
# The aggregate without hosts that records the policy last applied to the cloud: digest,
# file name and time.
POLICY_AGGREGATE: Final = "perfvm-policy"
POLICY_KEY: Final = "perfvm:policy"
POLICY_NAME_KEY: Final = "perfvm:policy_name"
POLICY_AT_KEY: Final = "perfvm:policy_at"

# Nova's extra specs and image properties that a class sets.
CPU_POLICY: Final = "hw:cpu_policy"
CPU_THREAD_POLICY: Final = "hw:cpu_thread_policy"
EMULATOR_THREADS: Final = "hw:emulator_threads_policy"
NUMA_NODES: Final = "hw:numa_nodes"
MEM_PAGE_SIZE: Final = "hw:mem_page_size"
VIF_MULTIQUEUE: Final = "hw:vif_multiqueue_enabled"
IMAGE_VIF_MULTIQUEUE: Final = "hw_vif_multiqueue_enabled"
IMAGE_VIF_MODEL: Final = "hw_vif_model"

# Bugs of Nova on Launchpad.  Live migrations lose the limits of a claim:
LP_LOST_LIMITS: Final = 2153425
# nova-compute ignores the PCI pools in a claim for a VM without devices:
LP_NO_PCI_POOLS: Final = 2144660

# Nova's hypervisor type of bare-metal nodes.
IRONIC: Final = "ironic"

# Argument of pip install in messages: no index has the package before its release.
PACKAGE: Final = "CHECKOUT"

# Nova's codes for kinds of page sizes in InstanceNUMACell.pagesize.
PAGE_SMALL: Final = -1
PAGE_LARGE: Final = -2
PAGE_ANY: Final = -3
PAGE_KINDS: Final = {"small": PAGE_SMALL, "large": PAGE_LARGE, "any": PAGE_ANY}
# The smallest huge page, in KiB.
HUGE_KB: Final = 2048

# The image property that lists the properties set by ``image sync``.
IMAGE_RECORD: Final = "perfvm_properties"

# Resource classes and traits in Placement; names outside os-resource-classes and
# os-traits begin with CUSTOM_.

# Placement's standard classes: dedicated CPUs, shared CPUs, and disk.
PCPU: Final = "PCPU"
VCPU: Final = "VCPU"
DISK: Final = "DISK_GB"
# One VM of a pinned class on a host; max_unit is 1.
RC_SLOT: Final = "CUSTOM_PERFVM_SLOT"
# 1/1000 of an elastic host's child provider; see nova_perfvm.placement.schemes.units.
RC_UNIT: Final = "CUSTOM_PERFVM_UNIT"
# N, the units of each child.  A constant, as flavors of all servers have to agree on N:
# VMs of flavors with different N could share a child.
UNITS_PER_CHILD: Final = 1000
# CPUs and memory of one NUMA node of a host; see nova_perfvm.placement.schemes.cells.
RC_CELL_CPU: Final = "CUSTOM_PERFVM_CELL_CPU"
RC_CELL_MEMORY: Final = "CUSTOM_PERFVM_CELL_MEMORY_MB"
# Resource classes that only child providers of enrolled hosts have.
CHILD_CLASSES: Final = frozenset({RC_UNIT, RC_CELL_CPU, RC_CELL_MEMORY})
RC_READ_IOPS: Final = "CUSTOM_PERFVM_READ_IOPS"
RC_WRITE_IOPS: Final = "CUSTOM_PERFVM_WRITE_IOPS"
# The host offers slots: flavors of VMs that share CPUs forbid the trait.
TRAIT_HIGH_PERFORMANCE: Final = "CUSTOM_PERFVM_HIGH_PERFORMANCE"
# The host is enrolled: an isolated aggregate keeps VMs without units away.  The trait
# ends in _ and the number of the host's children, so that a flavor for another number
# of children finds no host.
TRAIT_ELASTIC: Final = "CUSTOM_PERFVM_ELASTIC"
# Prefix of nova_perfvm's traits and resource classes.
CUSTOM_PREFIX: Final = "CUSTOM_PERFVM_"
# Prefix of the children's traits, before the child's letter.
TRAIT_CHILD: Final = "CUSTOM_PERFVM_CHILD_"
# The host's NUMA nodes are child providers; the children have the trait, too.
TRAIT_CELLS: Final = "CUSTOM_PERFVM_CELLS"
# Part of a child's name before the NUMA node ID.
CELL_SUFFIX: Final = "cell_"
# Prefix of the marker physical networks, before the NUMA node ID.  Each marker has
# affinity to one NUMA node; a claim's limits name it to make nova-compute use the node.
CELL_PHYSNET: Final = "perfvm_cell_"
# Letters of an elastic host's children; their number limits the host's slots.
CHILD_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"

# Reason codes: dotted, stable, never reused.  The rules declare their own codes in
# nova_perfvm.rules.  The codes here are for refusals by Nova and Placement, as explain
# reports them.

# nova-scheduler does not use a disabled compute service, or one that is down.
SERVICE_DISABLED: Final = "service.disabled"
SERVICE_DOWN: Final = "service.down"
# The server already runs on the host: only a resize may stay.
NOVA_SAME_HOST: Final = "nova.same_host"
# A filter of nova-scheduler that explain knows only by name.
NOVA_FILTER: Final = "nova.filter"
# The request names other hosts, or excludes this one.
NOVA_DESTINATION: Final = "nova.destination"
# nova-scheduler finds no compute node of the host.
NOVA_NO_STATE: Final = "nova.no_host_state"
# The host is in another availability zone; an aggregate is for other projects.
NOVA_AVAILABILITY_ZONE: Final = "nova.availability_zone"
NOVA_TENANT_AGGREGATE: Final = "nova.tenant_aggregate"
# The filter of the server group's policy is not enabled.
NOVA_GROUP_POLICY: Final = "nova.group_policy"
# ServerGroupAffinityFilter and ServerGroupAntiAffinityFilter refuse the host.
NOVA_GROUP_AFFINITY: Final = "nova.group_affinity"
NOVA_GROUP_ANTI_AFFINITY: Final = "nova.group_anti_affinity"
# NUMATopologyFilter finds no NUMA nodes, for a request that no rule judges.
NOVA_NUMA_TOPOLOGY: Final = "nova.numa_topology"
# PciPassthroughFilter finds no devices; NUMATopologyFilter finds none beside free CPUs.
NOVA_PCI: Final = "nova.pci_passthrough"
NOVA_PCI_NUMA: Final = "nova.pci_numa"
# NUMA nodes of the host lack their marker networks (CELL_PHYSNET).
NOVA_NODES_UNNAMED: Final = "nova.nodes_unnamed"
# Other filters of Nova; the reasons carry the expected and the found value.
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
# A fact for a filter's verdict is unknown; the code refuses no host.
NOT_JUDGED: Final = "nova.not_judged"
# The host has no resource provider.
PLACEMENT_NO_PROVIDER: Final = "placement.no_provider"
# No provider of the host has the resource class.
PLACEMENT_NO_INVENTORY: Final = "placement.no_inventory"
# An inventory is too small, too full, or does not allow the amount (min_unit...).
PLACEMENT_RESOURCE: Final = "placement.resource"
# The units of an elastic host's children do not suffice.
PLACEMENT_UNITS: Final = "placement.units"
# The CPUs or memory of NUMA node providers do not suffice.
PLACEMENT_CELLS: Final = "placement.cells"
PLACEMENT_TRAIT_MISSING: Final = "placement.trait_missing"
PLACEMENT_TRAIT_FORBIDDEN: Final = "placement.trait_forbidden"
# An aggregate of the host requires a trait that the request does not.
PLACEMENT_ISOLATED: Final = "placement.isolated_aggregate"
# The host is in no aggregate of the request's project.
PLACEMENT_TENANT: Final = "placement.tenant_aggregate"
# Each group of the request fits, but not all groups together.
PLACEMENT_GROUPS: Final = "placement.groups"
# Placement's API offers no candidate, though nova_perfvm.placement.candidates does.
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
