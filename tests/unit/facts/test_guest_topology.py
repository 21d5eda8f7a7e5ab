# SPDX-License-Identifier: Apache-2.0
"""The CPU topology of a guest, as Nova finds it for a flavor and an image."""

import random

import testtools
from nova import exception, objects
from nova.objects import image_meta
from nova.virt import hardware

from nova_perfvm.facts.conflicts import TOPOLOGY_PARTS
from nova_perfvm.facts.guest_topology import PROPERTIES, topology_of
from nova_perfvm.facts.snapshot import Flavor

objects.register_all()


def by_nova(vcpus, specs, properties):
    """Return Nova's sockets, cores and threads; None where it raises."""
    flavor = objects.Flavor(name="f", vcpus=vcpus, memory_mb=1, extra_specs=specs)
    props = image_meta.ImageMetaProps.from_dict(properties)
    image = objects.ImageMeta(name="i", properties=props)
    try:
        found = hardware.get_best_cpu_topology(flavor, image)
    except (
        exception.ImageVCPULimitsRangeExceeded,
        exception.ImageVCPUTopologyRangeExceeded,
        exception.ImageVCPULimitsRangeImpossible,
    ):
        return None
    return tuple(getattr(found, kind) for kind in TOPOLOGY_PARTS)


class SameAsNovaTest(testtools.TestCase):
    def test_drawn_flavors_and_images(self):
        rng = random.Random(43)
        outcomes = {"refused": 0, "the image's": 0, "the flavor's": 0}
        for _ in range(1200):
            vcpus = rng.choice([1, 4, 7, 12, 20])
            specs, properties = (
                {
                    name: str(rng.choice([1, 2, 4, 5, 10, 20]))
                    for name in PROPERTIES
                    if rng.random() < odds
                }
                for odds in (0.2, 0.3)
            )
            specs = {name.replace("_", ":", 1): text for name, text in specs.items()}
            flavor = Flavor("f", "f", vcpus, 1, 0, specs)
            case = (vcpus, specs, properties)
            expected = by_nova(*case)
            self.assertEqual(expected, topology_of(flavor, properties), case)
            alone = expected == by_nova(vcpus, specs, {})
            kind = "the flavor's" if alone else "the image's"
            outcomes[kind if expected else "refused"] += 1
        self.assertGreater(min(outcomes.values()), 100, outcomes)
