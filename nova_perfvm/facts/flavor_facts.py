# SPDX-License-Identifier: Apache-2.0
"""Compute the facts that the rules judge of a flavor and an image.

Nova works out the NUMA nodes in :mod:`nova.virt.hardware`; this module does the same
without Nova, for all that classes are made of.
"""

from collections.abc import Mapping

from oslo_utils import strutils

from nova_perfvm import constants as const
from nova_perfvm.facts import RequestCell, RequestFacts, placement_request
from nova_perfvm.facts.conflicts import hyperthreading, named_cpus
from nova_perfvm.facts.demand import RequestError
from nova_perfvm.facts.prefilters import Keys, memory_labels
from nova_perfvm.facts.snapshot import Flavor, Image, Server
from nova_perfvm.policy import even_share


def server_facts(server: Server, image: Image | None = None) -> RequestFacts:
    """Return the facts of a request for an existing server, from its embedded flavor.

    The NUMA topology is the server's present one.

    :param image: the server's image today; None if unknown, as for a server that boots
        from a volume
    """
    properties = image.properties if image else {}
    keys = Keys(server.extra_specs, properties)
    try:
        page_size_kb = _page_size_kb(keys)
    except RequestError:
        page_size_kb = None
    cells = tuple(
        RequestCell(
            vcpus=len(cell.vcpus) - len(cell.cpu_pinning),
            pcpus=len(cell.cpu_pinning),
            memory_mb=cell.memory_mb,
            page_size_kb=page_size_kb,
            cpu_thread_policy=keys.either(const.CPU_THREAD_POLICY),
        )
        for cell in server.cells or ()
    )
    backed = server.volume_backed
    facts = flavor_facts(server.embedded, properties, cells, volume_backed=backed)
    return facts._replace(running_vcpus=server.vcpus if server.built else None)


def flavor_facts(
    flavor: Flavor,
    properties: Mapping[str, str],
    cells: tuple[RequestCell, ...],
    *,
    volume_backed: bool | None,
) -> RequestFacts:
    """Return the facts of a request for a flavor, with its NUMA nodes as `cells`."""
    specs = flavor.extra_specs
    resources, traits = placement_request.read(
        specs, placement_request.required_traits(properties)
    )
    multiqueue = Keys(specs, properties).either(const.VIF_MULTIQUEUE)
    return RequestFacts(
        flavor=flavor.name,
        class_name=specs.get(const.CLASS_KEY),
        vcpus=flavor.vcpus,
        memory_mb=flavor.memory_mb,
        cells=cells,
        emulator_threads=specs.get(const.EMULATOR_THREADS) if cells else None,
        multiqueue=flavor.vcpus > 1 and strutils.bool_from_string(multiqueue),
        volume_backed=volume_backed,
        resources=resources,
        traits=traits,
    )


def pins(flavor: Flavor, properties: Mapping[str, str]) -> bool:
    """Return whether Nova pins the vCPUs of the flavor with the image."""
    policy = Keys(flavor.extra_specs, properties).either(const.CPU_POLICY)
    owned, _ = named_cpus(flavor.extra_specs)
    return (policy or "shared") != "shared" or owned > 0


def flavor_cells(
    flavor: Flavor, properties: Mapping[str, str], *, pinned: bool
) -> tuple[RequestCell, ...]:
    """Return the equal NUMA nodes of a server; empty without a NUMA topology."""
    specs = flavor.extra_specs
    keys = Keys(specs, properties)
    text = keys.either(const.NUMA_NODES) or "0"
    nodes = placement_request.whole_number(text)
    if nodes is None:
        raise RequestError(f"flavor {flavor.name}: {text!r} is no whole number")
    page_size_kb = _page_size_kb(keys)
    if not (nodes or page_size_kb is not None or pinned or memory_labels(specs)):
        return ()
    nodes = nodes or 1
    share = even_share(flavor.vcpus, nodes)
    share_mb = even_share(flavor.memory_mb, nodes)
    if not share or share_mb is None:
        raise RequestError(
            f"nova-api refuses flavor {flavor.name}: its {flavor.vcpus} vCPUs and "
            f"{flavor.memory_mb} MiB do not divide by {nodes} NUMA nodes"
        )
    threads = keys.either(const.CPU_THREAD_POLICY)
    threads = (threads or hyperthreading(specs, properties)) if pinned else None
    own = share if pinned else 0
    return (RequestCell(share - own, own, share_mb, page_size_kb, threads),) * nodes


def _page_size_kb(keys: Keys) -> int | None:
    """Return the page size as in ``RequestCell``; None if the flavor names none."""
    asked = keys.specs.get(const.MEM_PAGE_SIZE)
    if asked is None:
        return None
    other = keys.properties.get("hw_mem_page_size")
    # An image may choose a page size if the flavor says any or large.
    text = other if other and asked in {"any", "large"} else asked
    if text in const.PAGE_KINDS:
        return const.PAGE_KINDS[text]
    number = placement_request.whole_number(text)
    if number is not None:
        return number
    try:
        return int(strutils.string_to_bytes(text, return_int=True)) // 1024
    except (ValueError, OverflowError):
        raise RequestError(f"{const.MEM_PAGE_SIZE}={text} is no page size") from None
