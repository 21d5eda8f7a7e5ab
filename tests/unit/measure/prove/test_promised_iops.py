# SPDX-License-Identifier: Apache-2.0
"""IOPS of a class in absolute terms, beside the ratio to the host."""

import random
from dataclasses import replace

import testtools

from nova_perfvm.findings import Level
from nova_perfvm.measure.prove import page, proof
from nova_perfvm.measure.samples import Measurement
from tests.unit.measure.prove import sound
from tests.unit.rules.hosts import HP

VOLUME = "0a1b2c3d-4e5f-6789-a"
LOCAL = {"filesystem": "ext4", "direct": True, "network": False, "volume": ""}
ON_VOLUME = LOCAL | {"volume": VOLUME}
NETWORK = LOCAL | {"network": True}


def case(reads=3300, writes=3300, *, of_host=10000, host=NETWORK, vm=ON_VOLUME):
    """Return a sound case of a class of volumes that promises 3,000 IOPS."""
    disk = replace(HP.disk, source="volume", read_iops=3000, write_iops=3000)
    found = sound.Case(policy=sound.policy_document(disk=disk))
    draw = random.Random(7)
    for way, value in (("read", reads), ("write", writes)):
        found.measured += [
            Measurement(
                who=who,
                machine=machine,
                tool="fio",
                tool_version="3.33",
                metric=f"disk.{way}.{way}_iops",
                unit="1/s",
                better="higher",
                threads=4,
                round=number,
                at_once=2,
                value=(value if machine.kind == "guest" else of_host)
                * draw.lognormvariate(0, 0.01),
            )
            for number in range(1, sound.ROUNDS + 1)
            for who, machine in sound.MACHINES.items()
        ]
    for session in found.run["sessions"]:
        for who, look in session["targets"].items():
            look["medium"] = vm if who.startswith("vm") else host
    return found


def findings(judged, code):
    (together,) = [one for one in judged.sections if one.kind == "files"]
    return [one for one in together.report.findings if one.code == code]


class PromisedTest(testtools.TestCase):
    def test_each_way_by_itself(self):
        for reads, writes, levels in (
            (3300, 3300, [Level.OK]),
            # A limit at the promise lets a percent less pass.
            (2990, 2990, [Level.OK]),
            (1500, 3300, [Level.OK, Level.FAILURE]),
            (3300, 1500, [Level.OK, Level.FAILURE]),
        ):
            judged = case(reads, writes, of_host=4000).judged()
            found = findings(judged, "proof.promised_iops")
            self.assertEqual(2, len({one.subject for one in found}))
            worst = max(one.level for one in found)
            self.assertEqual(levels[-1], worst)
            line = proof.line(judged)
            self.assertIn(" of 3000 reads per second, a VM got ", line)
            self.assertIn(" of 3000 writes per second", line)
            self.assertEqual(worst is Level.FAILURE, line.startswith("REFUTED"))

    def test_page_and_record(self):
        made = case(writes=1500)
        record, judged = made.record(), made.judged()
        html = page.html(record, judged)
        self.assertIn("of 3000 writes per second, while all ran", html)
        told = [one.observed for one in judged.reasons]
        self.assertTrue([one for one in told if "writes per second; 0.5" in one], told)

    def test_nothing_was_measured(self):
        made = case()
        made.measured = [m for m in made.measured if "write" not in m.metric]
        codes = {one.code for one in made.judged().reasons}
        self.assertIn("proof.promised_iops", codes)

    def test_other_media_have_no_ratio(self):
        for _name, host, vm, ratios in (
            ("both by network", NETWORK, ON_VOLUME, 4),
            ("host's own disk", LOCAL, ON_VOLUME, 0),
            ("VM's own disk", LOCAL, LOCAL, 4),
        ):
            judged = case(host=host, vm=vm).judged()
            rows = [
                row
                for row in judged.comparisons
                if row.group.metric.startswith("disk.")
            ]
            self.assertEqual(ratios, len(rows))
            told = [w.observed for w in judged.warnings]
            said = [words for words in told if "different media" in words]
            self.assertEqual(ratios == 0, bool(said))
            self.assertTrue(findings(judged, "proof.promised_iops"))

    def test_media_that_prove_nothing(self):
        for _name, vm, words in (
            ("Nova's RBD", LOCAL, "on no volume of Cinder"),
            ("tmpfs", ON_VOLUME | {"direct": False}, "not direct"),
            ("not noted", None, "nobody noted"),
        ):
            judged = case(vm=vm).judged()
            found = [r for r in judged.reasons if r.code == "proof.disk_medium"]
            self.assertEqual([Level.UNKNOWN] * 2, [one.level for one in found])
            self.assertIn(words, found[0].observed)
