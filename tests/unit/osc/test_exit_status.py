# SPDX-License-Identifier: Apache-2.0
"""How every command ends that cannot do what it is for: one rule, one wording."""

import pathlib
import re

import fixtures

from tests import programs
from tests.directory import DirectoryCase
from tests.unit.osc import invocations

# Their exit status is a verdict: 0, 1 or 2; 3 says that there is none.
JUDGING = {
    *("audit", "preflight", "policy check", "explain", "survey", "prove"),
    *("host check", "guest check", "server check", "bench compare"),
    *("plan disk", "plan free", "plan drain", "plan defragment", "plan what-if"),
    "known-bugs",
}
# What they look at is a cloud, or what the option --snapshot names.
LOOKING = {
    *("audit", "survey", "explain", "capacity show", "map", "metrics"),
    *("plan free", "plan drain", "plan defragment", "plan what-if", "known-bugs"),
}
# Those that always have a cloud.
ON_A_CLOUD = {
    *("align", "preflight", "host list", "host show", "host enroll", "host unenroll"),
    *("rollback", "flavor sync", "image sync", "snapshot save", "server check"),
    *("limit sync", "prove"),
}
# What they do they do to this machine.
LOCAL = {
    *("host collect", "guest collect", "host playbook", "fleet playbook"),
}
# What they have to be told beside files.
ARGUMENTS = {
    "host show": ["nowhere"],
    "host enroll": ["nowhere", "--yes", "--policy", "builtin"],
    "host unenroll": ["nowhere", "--yes"],
    "align": ["nowhere", "--yes", "--policy", "builtin"],
    "rollback": ["--yes"],
    "flavor sync": ["--yes", "--policy", "builtin"],
    "image sync": ["image", "--yes", "--policy", "builtin"],
    "limit sync": ["--yes", "--policy", "builtin"],
    "plan resume": ["--policy", "builtin"],
    "snapshot save": ["-"],
    "server check": ["--host", "nowhere"],
    "explain": ["--flavor", "f"],
    "plan free": ["--flavor", "f"],
    "plan drain": ["nowhere"],
    "plan defragment": ["--budget", "1"],
    "plan what-if": ["--remove", "nowhere"],
    "known-bugs": ["--to", "33"],
    "host config": ["--mode", "shared", "--topology", "2x20"],
    "prove": [
        *("--flavor", "hp.20c.64g", "--host", "nowhere", "--image", "i"),
        *("--output", "/dev/not-written"),
    ],
    "bench run": ["--output", "/nowhere/a"],
    "bench import": [
        *("--who", "vm1", "--kind", "guest", "--threads", "1"),
        *("--output", "/nowhere/a"),
    ],
}
# How they are given a file, if not by --snapshot or --policy: by options, or first.
FILES = {
    "plan disk": ["--alone"],
}
FIRST = {
    *("policy check", "host check", "guest check", "bench compare"),
    *("bench run", "bench import", "plan resume"),
}
RIGHTS = "this needs the rights of an administrator"


CLIENT = {*programs.COMMANDS["openstack"]}
SCRIPT = {*programs.COMMANDS["nova-perfvm"]}


def called(name, *more):
    """Return the arguments of a command."""
    return [*name.split(" "), *ARGUMENTS.get(name, ()), *more]


def with_file(name, path):
    """Return the arguments of a command that reads a file."""
    if name == "policy diff":
        return called(name, path, path)
    if name in FIRST:
        return called(name, path)
    if name in FILES:
        given = [word for option in FILES[name] for word in (option, path)]
        return called(name, *given)
    return called(name, "--snapshot" if name in LOOKING else "--policy", path)


class ExitStatusTest(DirectoryCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.EnvironmentVariable("PERFVM_POLICY"))

    def assert_ends(self, name, arguments, words, cloud=None, *, client=True):
        """Assert that a command says why it did nothing, and ends as its kind does."""
        program = "openstack" if client else "nova-perfvm"
        status, stdout, stderr = invocations.run(program, arguments, cloud)
        expected = 3 if name in JUDGING else 1
        self.assertEqual(
            (expected, ""), (status, stdout), f"{program} {arguments}: {stderr}"
        )
        self.assertIn(words, stderr, f"{program} {arguments}")
        self.assertNotIn("Traceback", stderr)

    def test_all_commands_are_of_a_kind(self):
        printing = {
            *("policy show", "policy diff", "flavor generate", "image generate"),
            *("limit generate", "host config", "tempest config", "help", *FIRST),
        }
        known = JUDGING | LOOKING | ON_A_CLOUD | LOCAL | printing
        self.assertEqual(set(), (CLIENT | SCRIPT) - known)
        self.assertEqual(set(), known - (CLIENT | SCRIPT))

    def test_local_ones_are_in_both_programs_and_ask_for_no_cloud(self):
        self.assertEqual(set(), LOCAL - (CLIENT & SCRIPT))
        for name in LOCAL:
            command = programs.COMMANDS["nova-perfvm"][name].load()
            self.assertFalse(command.auth_required, name)

    def test_the_documentation_names_those_that_judge(self):
        root = pathlib.Path(__file__).parents[3]
        page = (root / "doc/source/reference/commands.rst").read_text()
        named = page[page.index("These judge") : page.index("They could not look")]
        self.assertEqual(sorted(JUDGING), re.findall("``([^`]+)``", named))

    def on_a_cloud(self):
        """Yield each command that looks at a cloud or changes it."""
        for name in sorted(ON_A_CLOUD | LOOKING):
            yield name, called(name)
        yield "policy check", ["policy", "check"]
        yield "policy diff", ["policy", "diff", "builtin", "builtin"]

    def test_credentials_of_no_administrator(self):
        for name, arguments in self.on_a_cloud():
            self.assert_ends(name, arguments, RIGHTS, invocations.forbidding())

    def test_no_cloud(self):
        for name, arguments in self.on_a_cloud():
            self.assert_ends(name, arguments, "Missing value auth-url")
        for name in sorted(LOOKING & SCRIPT - {"audit", "survey"}):
            words = "there is no cloud here"
            self.assert_ends(name, called(name), words, client=False)

    def reading(self):
        """Yield each command that reads a file, and the program that has it."""
        for names, client in ((CLIENT, True), (SCRIPT, False)):
            for name in sorted(names - LOCAL - {"host unenroll", "rollback", "help"}):
                yield name, client

    def test_a_file_that_is_not_there_or_of_another_kind(self):
        other = self.directory / "other"
        other.write_text('{"schema_version": "1.0", "kind": "something else"}')
        for name, client in self.reading():
            for path in (str(self.directory / "none"), str(other)):
                if name == "policy check" and path == str(other):
                    # It judges the file.
                    continue
                given = (name, with_file(name, path), path, invocations.forbidding())
                self.assert_ends(*given, client=client)

    def test_a_policy_with_mistakes(self):
        path = self.directory / "policy"
        path.write_text("placement: slot\n")
        for program in ("openstack", "nova-perfvm"):
            status, stdout, stderr = invocations.run(
                program, ["policy", "check", path], invocations.forbidding()
            )
            self.assertEqual((2, ""), (status, stdout))
            self.assertIn("expected one of 'slots'", stderr)

    def test_wrong_arguments(self):
        for names, program in ((CLIENT, "openstack"), (SCRIPT, "nova-perfvm")):
            for name in sorted(names):
                status, stdout, stderr = invocations.run(
                    program, [*name.split(" "), "--bogus"], invocations.forbidding()
                )
                expected = 3 if name in JUDGING else 2
                self.assertEqual((expected, ""), (status, stdout), f"{program} {name}")
                self.assertIn(f"usage: {program} ", stderr)
