# SPDX-License-Identifier: Apache-2.0
"""A host's nova.conf means to us what it means to nova-compute."""

import pathlib
import tempfile

import testtools
from nova import conf as nova_options
from nova import exception
from nova.virt import hardware
from oslo_config import cfg

from nova_perfvm.measure import nova_conf
from nova_perfvm.measure.nova_conf import NovaConfError

# {what it shows: the value of [compute]cpu_dedicated_set}
FORMS = {
    "numbers": "1,2,3",
    "range": "0-19",
    "several ranges": "0-3,8-11,16",
    "range of one": "4-4",
    "overlapping": "0-5,3-9",
    "blanks": " 0 - 3 , 5 ",
    "several commas": "0,,1,",
    "commas alone": ",",
    "empty": "",
    "exclusion": "0-5,^3",
    "exclusion first": "^3,0-5",
    "blank in an exclusion": "0-5,^ 3",
    "exclusion alone": "^3",
    "all is excluded": "3,^3",
    "excluded range": "0-9,^2-4",
    "blanks in an excluded range": "0-9,^ 2 - 4",
    "all but a range": "0-3,^0-3",
    "excluded range alone": "^0-3",
    "excluded twice": "0-3,^^2",
    "caret in a range": "0-^3",
    "caret alone": "0-3,^",
    "backwards": "5-3",
    "excluded backwards": "0-9,^4-2",
    "no end": "3-",
    "no start": "-3",
    "three ends": "0-3-5",
    "negative": "0--3",
    "negative nothing": "0--0",
    "plus": "+3",
    "underscore": "1_0",
    "hexadecimal": "0x10",
    "letter": "0-3,x",
    "semicolons": "0;1",
    "blanks between": "0 1",
    "quotes": '"0-3"',
    "continued": "0-3,\n  8",
    "reference": "$cpu_shared_set",
    "reference in braces": "0-3,${cpu_shared_set}",
    "reference with its group": "${compute.cpu_shared_set}",
    "reference to another group": "${libvirt.cpu_shared_set}",
    "reference to itself": "$cpu_dedicated_set",
    "reference to the default section": "$vcpu_pin_set",
    "reference to what does not exist": "$our_cpus",
    "escaped": r"\$cpu_shared_set",
    "dollar": "$$3",
    "dollar alone": "0-3,$",
    "comment behind": "0-3 # ours",
}
SHARED = "cpu_shared_set = 40-41\n"


def by_nova(text):
    """Return the dedicated CPUs that Nova takes; None if it refuses to start."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "nova.conf")
        path.write_text(text)
        conf = cfg.ConfigOpts()
        nova_options.compute.register_opts(conf)
        try:
            conf([], default_config_files=[str(path)])
            value = conf.compute.cpu_dedicated_set
            found = hardware.parse_cpu_spec(value) if value else set()
        except (cfg.Error, exception.Invalid, RecursionError):
            return None
    return None if value and not found else found


def by_us(text):
    try:
        return set(nova_conf.parse(text).dedicated)
    except NovaConfError:
        return None


class SetsTest(testtools.TestCase):
    def test_forms_of_a_set_as_nova_reads_them(self):
        for shared in (SHARED, ""):
            for name, value in FORMS.items():
                text = f"[compute]\ncpu_dedicated_set = {value}\n{shared}"
                self.assertEqual(by_nova(text), by_us(text), name)

    def test_a_set_that_leaves_no_cpu_is_named(self):
        error = self.assertRaises(
            NovaConfError, nova_conf.parse, "[compute]\ncpu_shared_set = ^3\n"
        )
        self.assertEqual("[compute]cpu_shared_set = ^3 leaves no CPU", str(error))

    def test_vcpu_pin_set(self):
        either = "[DEFAULT]\nvcpu_pin_set = 1-19,^3\n[compute]\n"
        found = nova_conf.parse(f"{either}{SHARED}")
        self.assertEqual({*range(1, 20)} - {3}, found.either)
        # nova.virt.libvirt.driver, _get_vcpu_available
        self.assertEqual((frozenset(),) * 2, found[:2])
        error = self.assertRaises(
            NovaConfError, nova_conf.parse, f"{either}cpu_dedicated_set = 0\n"
        )
        self.assertIn("nova-compute does not start", str(error))
