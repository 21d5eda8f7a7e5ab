# SPDX-License-Identifier: Apache-2.0
"""Who does what findings print as their remedy, and what came of it.

Each code of nova_perfvm/findings.py is here once; tests/unit/test_remedies.py looks
that none is left out, and that the tests that are named are there.
"""

from typing import NamedTuple

from nova_perfvm import findings as codes


class Executed(NamedTuple):
    """A test runs the commands on a real Nova; then the finding is gone.

    :ivar test: its name
    """

    test: str


class DoneOtherwise(NamedTuple):
    """A test does what the remedy says, but not by the commands that are printed.

    :ivar how: what it does instead
    """

    test: str
    how: str


class ByHand(NamedTuple):
    """It is for the operator to do, and no command alone would do it.

    :ivar why: the reason
    """

    why: str


class NonePrinted(NamedTuple):
    """The finding has no remedy.

    :ivar why: the reason
    """

    why: str


_HERE = "tests.functional.test_remedies"
_RESIZES = Executed(f"{_HERE}.TestResizes.test_servers_of_no_flavor_of_the_policy")
_LEAVES = Executed(f"{_HERE}_of_hosts.TestMigrations.test_servers_that_should_leave")
_APART = Executed(f"{_HERE}_of_hosts.TestPins.test_servers_on_the_same_cpus")
_OF_UNITS = Executed(f"{_HERE}_of_hosts.TestUnits.test_flavors_of_before")
_CHECKED = Executed(f"{_HERE}_of_hosts.TestPolicyCheck.test_labels_and_flavors")
_LEFT = Executed(f"{_HERE}.TestPlacement.test_what_others_left")
_ENROLLED = DoneOtherwise(
    "tests.functional.test_enroll.TestEnroll.test_repair", "enroll as a function"
)
_HEAL = Executed(
    "tests.functional.test_lost_allocations.TestNone.test_commands_of_the_documentation"
)
_SHOWS = ByHand("it shows what to look at, and changes nothing")
_SERVERS = "tests.functional.test_remedies_of_servers.TestGivenUp"
_OPTIONS = "tests.unit.osc.test_option_remedies.OptionsTest"
_NOVA_CONF = DoneOtherwise(
    f"{_OPTIONS}.test_what_to_write",
    "in a copy of the file, without the service that reads it",
)
_IN_WORDS = NonePrinted("nova-perfvm-status says in its sentence what there is")
_OF_HOST = ByHand("it is done on the host: restart nova-compute, or configure it")
_FILE = DoneOtherwise(f"{_OPTIONS}.test_what_to_name", "of a cloud made of facts")

REMEDIES = {
    # Servers beside each other
    codes.TOO_MANY_ON_HOST: _LEAVES,
    codes.CLASSES_MIXED: _LEAVES,
    codes.HOST_NOT_MANAGED: _LEAVES,
    codes.HOST_RESERVED: _LEAVES,
    codes.WRONG_HOST: _LEAVES,
    codes.TOO_MANY_ON_CELL: _APART,
    codes.PINS_OVERLAP: _APART,
    codes.SLOT_STRANDED: _RESIZES,
    codes.NOT_IN_ONE_CELL: _RESIZES,
    codes.NOT_PINNED: _RESIZES,
    # Servers, flavors and images
    codes.CONTRACT_DIFFERS: _RESIZES,
    codes.WRONG_SIZE: _RESIZES,
    codes.NO_MULTIQUEUE: _RESIZES,
    codes.CLASSLESS_PINNED: _RESIZES,
    codes.FLAVOR_CHANGED: _RESIZES,
    codes.NEAR_MISS: _RESIZES,
    codes.FLAVOR_DIFFERS: _RESIZES,
    codes.NOT_CLAIMED: _RESIZES,
    codes.CLAIMED_TOO_MUCH: _LEFT,
    codes.CLASS_UNKNOWN: _LEFT,
    codes.FORMER_SIZE: Executed(
        "tests.functional.test_former_sizes.SchemeCase.test_remedies"
    ),
    codes.NOT_OF_CLASS: DoneOtherwise(
        "tests.long.test_audit.TestRootDisks.test_volumes_and_images",
        "another server by Nova's API: nobody can say the image for the test",
    ),
    codes.IMAGE_TRAIT: DoneOtherwise(
        "tests.functional.test_contract.TestImageOpensElasticHost"
        ".test_a_forced_host_and_the_audit",
        "the rebuild and the resize by Nova's API",
    ),
    codes.IMAGE_CONFLICT: Executed(f"{_SERVERS}.test_image"),
    codes.TENANT_IMAGE: ByHand("the image is a tenant's, who may have a reason"),
    codes.FLAVOR_WITHOUT_UNITS: _OF_UNITS,
    codes.FLAVOR_LEFT_BEHIND: _OF_UNITS,
    codes.VOLUME_TYPE_MISSING: ByHand("the backend's name is in cinder.conf"),
    codes.VOLUME_TYPE_DIFFERS: ByHand(
        "Cinder copies the volume by a backend of that type"
    ),
    # Hosts
    codes.HOST_NOT_ISOLATED: _ENROLLED,
    codes.CHILDREN_DIFFER: _ENROLLED,
    codes.TRAIT_DIFFERS: _LEFT,
    codes.INVENTORY_DIFFERS: _OF_HOST,
    codes.LABEL_UNKNOWN: _LEFT,
    codes.LABEL_MISSING: _CHECKED,
    codes.HOST_UNREADABLE: _OF_HOST,
    codes.PROVIDER_FILES_DIFFER: _OF_HOST,
    codes.PROVIDER_FILES_REFUSED: _OF_HOST,
    # Placement
    codes.LEAKED_ALLOCATION: _LEFT,
    codes.ALLOCATION_MISSING: _HEAL,
    codes.ALLOCATION_ELSEWHERE: _LEFT,
    codes.ORPHANED_CHILD: _LEFT,
    codes.ORPHANED_PROVIDER: _LEFT,
    codes.UNITS_LACKING: Executed(
        "tests.functional.test_lost_allocations.TestUnits.test_both_classes"
    ),
    codes.CELL_DIFFERS: Executed(
        "tests.functional.test_cells_align.TestAlign.test_commands_of_the_documentation"
    ),
    codes.OVER_INVENTORY: _SHOWS,
    # Nova, libvirt and the kernel
    codes.PINS_DIFFER: ByHand("it says which of two commands, by what runs there"),
    codes.DOMAIN_LEFT_BEHIND: ByHand("which of two domains is right, nobody can tell"),
    codes.DOMAIN_MISSING: _SHOWS,
    codes.NOT_COMPARED: ByHand("it is done on the host: collect once more"),
    codes.STUCK: Executed(f"{_SERVERS}.test_stuck"),
    codes.BUILD_CUT_OFF: Executed(f"{_SERVERS}.test_build_cut_off"),
    codes.NOVA_BUG: ByHand("each bug has its own, in nova_perfvm/known_bugs"),
    codes.NOVA_BUG_POSSIBLE: ByHand("each bug has its own, in nova_perfvm/known_bugs"),
    codes.RETRY_COUNT: _NOVA_CONF,
    # What was not seen
    codes.RETRY_COUNT_UNKNOWN: _FILE,
    codes.CELLS_UNKNOWN: _SHOWS,
    codes.NOT_SEEN: _SHOWS,
    codes.CELL_DOWN: _SHOWS,
    # policy check and preflight
    codes.NO_CPU_FOR_HOST: NonePrinted("it says what the policy costs"),
    codes.EMULATOR_THREADS_FLOAT: NonePrinted("it says what the policy costs"),
    codes.RESTS_ON_FALLBACK: NonePrinted("it says what the policy costs"),
    codes.FLAVORS_REFUSED: ByHand("the refusal names what to change first"),
    codes.FLAVORS_DIFFER: _CHECKED,
    codes.NO_HOST_JUDGED: _CHECKED,
    codes.GENERAL_ON_SLOTS: _CHECKED,
    codes.HOST_UNKNOWN: _OF_HOST,
    codes.NOT_UNITS: ByHand("it names a key of the policy"),
    codes.TO_BACKFILL: DoneOtherwise(
        "tests.functional.test_backfill.TestBackfill.test_high_performance_vms",
        "enroll with backfill as a function",
    ),
    codes.FLAVORS_TO_REFUSE: DoneOtherwise(
        "tests.functional.test_brownfield.TestEnabling"
        ".test_what_is_refused_is_told_before",
        "it writes the key of the policy",
    ),
    # Options, and what Nova lets users do
    codes.FILTER_MISSING: _NOVA_CONF,
    codes.FILTERS_UNKNOWN: _FILE,
    codes.FILTER_ORDER: _NOVA_CONF,
    codes.JUDGED_TWICE: _NOVA_CONF,
    codes.NOT_STEERED: _NOVA_CONF,
    codes.CHEAPER_FILTER: _NOVA_CONF,
    codes.COSTLY_FILTER: _IN_WORDS,
    codes.FALLBACK_QUERY: _NOVA_CONF,
    codes.FALLBACK_UNKNOWN: _FILE,
    codes.ISOLATION: _NOVA_CONF,
    codes.NUMA_PACKING: _NOVA_CONF,
    codes.ISOLATION_UNKNOWN: _FILE,
    codes.FALLBACK_GONE: _IN_WORDS,
    codes.PIN_SET: _IN_WORDS,
    codes.FILTERS_UNAVAILABLE: _IN_WORDS,
    codes.MODE_OBSERVE: _NOVA_CONF,
    codes.NOT_ENFORCED: _NOVA_CONF,
    codes.ENFORCED_UNKNOWN: _FILE,
    codes.HINTS_TAKEN: ByHand("it is to upgrade Nova"),
}
