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

# Nova's own extra specs and image properties that a class is made of.
CPU_POLICY: Final = "hw:cpu_policy"
CPU_THREAD_POLICY: Final = "hw:cpu_thread_policy"
EMULATOR_THREADS: Final = "hw:emulator_threads_policy"
NUMA_NODES: Final = "hw:numa_nodes"
MEM_PAGE_SIZE: Final = "hw:mem_page_size"
VIF_MULTIQUEUE: Final = "hw:vif_multiqueue_enabled"
IMAGE_VIF_MULTIQUEUE: Final = "hw_vif_multiqueue_enabled"
IMAGE_VIF_MODEL: Final = "hw_vif_model"

# Nova's codes for "a page size by kind" in InstanceNUMACell.pagesize.
PAGE_SMALL: Final = -1
PAGE_LARGE: Final = -2
PAGE_ANY: Final = -3

# The image property that keeps the names of those that ``image sync`` has set.
IMAGE_RECORD: Final = "perfvm_properties"

# What Placement counts, and tells hosts apart by (CUSTOM_ is for all that is
# not in os-resource-classes and os-traits).

# One VM of a pinned class on a host; max_unit is 1.
RC_SLOT: Final = "CUSTOM_PERFVM_SLOT"
# A share of an elastic host's child provider; see nova_perfvm.placement.units.
RC_UNIT: Final = "CUSTOM_PERFVM_UNIT"
# N, the units of each child.  No key of the policy: flavors are written for it,
# those that servers have embedded, too, and two that differ in it fit one child.
UNITS_PER_CHILD: Final = 1000
RC_READ_IOPS: Final = "CUSTOM_PERFVM_READ_IOPS"
RC_WRITE_IOPS: Final = "CUSTOM_PERFVM_WRITE_IOPS"
# The host offers slots: VMs that share CPUs stay away.
TRAIT_HIGH_PERFORMANCE: Final = "CUSTOM_PERFVM_HIGH_PERFORMANCE"
# The host is enrolled: VMs without units stay away (isolated aggregate).  What
# follows is _ and the number of its children, so that a flavor that was made for
# another number finds no host; earlier versions had nothing follow.
TRAIT_ELASTIC: Final = "CUSTOM_PERFVM_ELASTIC"
# What the names of the project's traits and resource classes begin with.
CUSTOM_PREFIX: Final = "CUSTOM_PERFVM_"
# Followed by the child's letter.
TRAIT_CHILD: Final = "CUSTOM_PERFVM_CHILD_"
# One letter names a child, in flavors, too: more slots has no elastic host.
CHILD_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"

# Reason codes: dotted, stable, never reused.  The first word says what has to
# change: the request as a whole, the flavor, or the host.

# perfvm:class names a class that the policy does not declare.
FLAVOR_CLASS_UNKNOWN: Final = "flavor.class_unknown"
# The flavor's vCPUs are not the class's: one odd size strands a whole slot.
FLAVOR_VCPUS: Final = "flavor.vcpus"
# Pinned where the class is shared, or the reverse.
FLAVOR_CPU_POLICY: Final = "flavor.cpu_policy"
# A thread policy that the class does not have changes how many CPUs are taken.
FLAVOR_CPU_THREAD_POLICY: Final = "flavor.cpu_thread_policy"
# Not split over as many NUMA nodes as the class says, or not evenly.
FLAVOR_NUMA_NODES: Final = "flavor.numa_nodes"
# An emulator policy of its own takes a CPU that the class did not count.
FLAVOR_EMULATOR_THREADS: Final = "flavor.emulator_threads"
# The class wants a page size that neither flavor nor image asks for.
FLAVOR_MEM_PAGE_SIZE: Final = "flavor.mem_page_size"
# The flavor asks Placement for other amounts than the class's VMs are to take.
FLAVOR_RESOURCES: Final = "flavor.resources"
# The flavor requires or forbids other traits than the class's VMs are to.
FLAVOR_TRAITS: Final = "flavor.traits"
# The image requires a trait of the project, which opens hosts to it.
REQUEST_IMAGE_TRAIT: Final = "request.image_trait"
# Neither flavor nor image turns multiqueue on: one CPU gets all interrupts.
REQUEST_NO_MULTIQUEUE: Final = "request.no_multiqueue"
# The class lives on network volumes, this server boots from an image.
REQUEST_NOT_VOLUME_BACKED: Final = "request.not_volume_backed"
# Nova takes it for a rebuild, and claims nothing; no server is being rebuilt.
REQUEST_NOT_A_REBUILD: Final = "request.not_a_rebuild"

# The policy judges labelled hosts only, and this one has no label.
HOST_NOT_MANAGED: Final = "host.not_managed"
# Aggregate metadata reserves the host for other classes.
HOST_CLASS_RESERVED: Final = "host.class_reserved"
# Aggregate metadata names a class that the policy does not declare.
HOST_LABEL_UNKNOWN: Final = "host.label_unknown"
# Several pinned classes, one of them exclusive: pins cannot tell them apart.
HOST_LABEL_AMBIGUOUS: Final = "host.label_ambiguous"
# The compute reports no NUMA cells, so nothing can be pinned inside one.
HOST_NO_NUMA: Final = "host.no_numa_topology"
# No CPU of the host may be pinned (only cpu_shared_set is configured).
HOST_NO_DEDICATED_CPUS: Final = "host.no_dedicated_cpus"
# No CPU of the host may be shared (only cpu_dedicated_set is configured).
HOST_NO_SHARED_CPUS: Final = "host.no_shared_cpus"
# Both kinds of CPUs on a host of a class that wants hosts for itself.
HOST_MODE_MIXED: Final = "host.mode_mixed"
# No NUMA cell has as many CPUs as one VM of the class needs.
HOST_CELL_TOO_SMALL: Final = "host.numa_cell_too_small"
# CPUs suffice, but no NUMA cell is large enough for the VM's memory.
HOST_CELL_MEMORY: Final = "host.numa_cell_memory_too_small"
# The cells could hold such a VM, but are taken.
HOST_NO_FREE_SLOT: Final = "host.no_free_slot"
# A cell has the CPUs, but what is left of its memory does not suffice.
HOST_NO_FREE_MEMORY: Final = "host.no_free_memory"
# As many VMs of the class as max_per_host allows.
HOST_MAX_PER_HOST: Final = "host.max_per_host"
# VMs of another class are on the host (or, under exclusive: cell, the cell).
HOST_CLASS_CONFLICT: Final = "host.class_conflict"
# Pins that are no sum of the CPUs of the class's VMs: VMs that the policy does
# not know sit there.
HOST_FOREIGN_PINS: Final = "host.foreign_pins"
# An elastic host, and the request takes no units of it.
HOST_UNITS_LACKING: Final = "host.units_lacking"
# A pinned VM of no class would strand a slot of this host.
HOST_CLASSLESS_PINNED: Final = "host.classless_pinned"

REASON_CODES: Final = frozenset(
    value
    for name, value in list(globals().items())
    if name.startswith(("FLAVOR_", "REQUEST_", "HOST_"))
)

# What other layers refuse for, which have no codes of their own; explain does.

# The compute service is not one that the scheduler may use.
SERVICE_DISABLED: Final = "service.disabled"
SERVICE_DOWN: Final = "service.down"
# Not in the zone that is asked for; an aggregate is for other projects.
NOVA_AVAILABILITY_ZONE: Final = "nova.availability_zone"
NOVA_TENANT_AGGREGATE: Final = "nova.tenant_aggregate"
# NUMATopologyFilter finds no cells where no rule has looked for any.
NOVA_NUMA_TOPOLOGY: Final = "nova.numa_topology"
# The host has no resource provider.
PLACEMENT_NO_PROVIDER: Final = "placement.no_provider"
# No provider of the host has the resource class.
PLACEMENT_NO_INVENTORY: Final = "placement.no_inventory"
# The inventory is too small, too full, or gives no such amount at once.
PLACEMENT_RESOURCE: Final = "placement.resource"
# The same for units of elastic hosts, which have their own arithmetic.
PLACEMENT_UNITS: Final = "placement.units"
PLACEMENT_TRAIT_MISSING: Final = "placement.trait_missing"
PLACEMENT_TRAIT_FORBIDDEN: Final = "placement.trait_forbidden"
# An aggregate of the host wants a trait that is not asked for.
PLACEMENT_ISOLATED: Final = "placement.isolated_aggregate"
# Each group of the request fits, but not all at once.
PLACEMENT_GROUPS: Final = "placement.groups"
# Placement itself was asked, and says no where this arithmetic says yes.
PLACEMENT_REFUSED: Final = "placement.refused"
# No API shows the host's NUMA cells, so the rules cannot judge it.
CELLS_UNKNOWN: Final = "cells.unknown"

OUTER_CODES: Final = frozenset(
    value
    for name, value in list(globals().items())
    if name.startswith(("SERVICE_", "NOVA_", "PLACEMENT_", "CELLS_"))
)
