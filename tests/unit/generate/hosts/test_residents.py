# SPDX-License-Identifier: Apache-2.0
import json

import testtools

from nova_perfvm.generate.hosts import HostConfigError
from nova_perfvm.generate.hosts.residents import (
    Resident,
    parse_residents,
    refuse_residents,
)


def server(name="web", specs=None, **more):
    return {"name": name, "id": "1", "flavor": {"extra_specs": specs or {}}} | more


class ParseTest(testtools.TestCase):
    def test_lists_objects_and_documents_in_a_row(self):
        one, two = server("a"), server("b", {"hw:cpu_policy": "dedicated"})
        expected = (Resident("a", "shared"), Resident("b", "dedicated"))
        for text in (
            json.dumps([one, two]),
            json.dumps({"servers": [one, two]}),
            f"{json.dumps(one)}\n{json.dumps(two, indent=1)}\n",
        ):
            self.assertEqual(expected, parse_residents(text, "f"))

    def test_no_server(self):
        for text in ("", "\n", "[]", '{"servers": []}'):
            self.assertEqual((), parse_residents(text, "f"))

    def test_cpu_policy(self):
        for policy, specs, image in (
            ("shared", {}, {}),
            ("shared", {"hw:cpu_policy": "shared"}, {}),
            ("dedicated", {"hw:cpu_policy": "dedicated"}, {}),
            ("mixed", {"hw:cpu_policy": "mixed"}, {}),
            ("dedicated", {"resources:PCPU": "4"}, {}),
            ("dedicated", {}, {"hw_cpu_policy": "dedicated"}),
            ("shared", {"hw:cpu_policy": ["dedicated"]}, {}),
            ("shared", {}, {"hw_cpu_policy": {"x": 1}}),
        ):
            text = json.dumps([server(specs=specs, image={"properties": image})])
            (found,) = parse_residents(text, "f")
            self.assertEqual(policy, found.cpu_policy)

    def test_what_does_not_run_on_the_host(self):
        text = json.dumps([server(status="SHELVED_OFFLOADED"), server(image="")])
        self.assertEqual(1, len(parse_residents(text, "f")))

    def test_keys_as_the_client_writes_them(self):
        text = json.dumps([{"Name": "a", "Flavor": {"extra_specs": {}}}])
        self.assertEqual((Resident("a", "shared"),), parse_residents(text, "f"))

    def test_refused(self):
        host = "OS-EXT-SRV-ATTR:host"
        for words, document in (
            ("no object", [1]),
            ("no list", 1),
            ("no list", {"servers": 1}),
            ("no name", [{}]),
            ("extra_specs are not there", [server(flavor="hp.20c.64g")]),
            ("extra_specs are not there", [server(flavor={"name": "x"})]),
            ("several hosts", [server(**{host: "a"}), server(**{host: "b"})]),
        ):
            with self.subTest(words):
                error = self.assertRaises(
                    HostConfigError,
                    parse_residents,
                    json.dumps(document),
                    "f",
                )
                self.assertIn(words, str(error))
        error = self.assertRaises(HostConfigError, parse_residents, "{", "f")
        self.assertIn("server show -f json", str(error))


class CheckTest(testtools.TestCase):
    def test_names_at_most_ten(self):
        many = [Resident(f"vm{n:02}", "shared") for n in range(12)]
        error = self.assertRaises(
            HostConfigError, refuse_residents, many, dedicated=True, shared=False
        )
        self.assertIn("VMs on it are not pinned", str(error))
        self.assertIn("'vm09' and 2 more", str(error))

    def test_both_kinds_take_all(self):
        all_ = [Resident(p, p) for p in ("shared", "dedicated", "mixed")]
        refuse_residents(all_, dedicated=True, shared=True)
