# SPDX-License-Identifier: Apache-2.0

import dataclasses

import fixtures

from nova_perfvm.cloud.errors import CloudError, RefusedError
from nova_perfvm.facts.snapshot import DISABLED_REASON, Provider
from tests.unit.changes.elastic import server, view
from tests.unit.osc.test_elastic import CloudCommandCase

HYPERVISORS = [{"hypervisor_hostname": "n5", "service": {"host": "h5"}}]


class SeveralHostsTest(CloudCommandCase):
    def setUp(self):
        super().setUp()
        self.views = {f"h{n}": view(host=f"h{n}") for n in range(1, 6)}
        # Its node has another name than its service.
        self.views["n5"] = self.views["h5"]
        self.changed = {}
        self.errors = {}
        self.answer("live_hosts.hypervisors", HYPERVISORS)
        self.answer("live_hosts.detached_children", ())
        for name, value in (
            ("live_hosts.read_host", self.look),
            ("converge.change_host", self.change),
        ):
            self.useFixture(fixtures.MonkeyPatch(f"nova_perfvm.cloud.{name}", value))

    def look(self, _api, name, among):
        self.assertEqual(HYPERVISORS, among)
        if name not in self.views:
            raise CloudError(f"no compute host {name}")
        return self.views[name]

    def change(self, _api, host, _planner, **_how):
        if host in self.errors:
            raise self.errors[host]
        self.changed[host] = self.changed.get(host, 0) + 1
        return 12

    def run_on(self, *arguments):
        """Return the exit status, and the lines of stdout and stderr, sorted."""
        status, *texts = self.run_command("host", *arguments)
        return status, *(sorted(text.splitlines()) for text in texts)

    def test_each_once(self):
        status, stdout, stderr = self.run_on(
            "enroll", "h1", "h2", "h5", "h1", "n5", "--yes"
        )
        self.assertEqual((0, []), (status, stderr))
        self.assertEqual([f"h{n} is enrolled: 12 changes" for n in (1, 2, 5)], stdout)
        self.assertEqual({"h1": 1, "h2": 1, "h5": 1}, self.changed)

    def test_errors_of_one_stop_no_other(self):
        off = {"enabled": False, "disabled_reason": DISABLED_REASON}
        vm = dataclasses.replace(server("vm"), host="h2")
        self.views["h2"] = view(vm, host="h2", service=off)
        self.errors["h3"] = CloudError("Nova does not answer")
        self.errors["h4"] = RefusedError(("a VM came", "another came"))
        hosts = ("h1", "h2", "h3", "h4", "nowhere", "h5")
        status, stdout, stderr = self.run_on("enroll", *hosts, "--yes")
        self.assertEqual(1, status)
        self.assertEqual(
            ["h1 is enrolled: 12 changes", "h5 is enrolled: 12 changes"], stdout
        )
        for line, words in zip(
            stderr,
            (
                "h2: h2 has VMs without units: vm",
                "h3: Nova does not answer",
                "h4: a VM came; another came",
                "nowhere: no compute host nowhere",
            ),
            strict=True,
        ):
            self.assertTrue(line.startswith(words), line)
        # What an earlier run left there is said.
        self.assertIn("openstack compute service set --enable h2", stderr[0])

    def test_nothing_is_changed_unasked(self):
        for option, status, words in (
            (["--dry-run"], 0, []),
            ([], 1, ["no terminal to ask on: add --yes, or --dry-run"]),
        ):
            found = self.run_on("enroll", "h1", "h2", *option)
            self.assertEqual((status, words), (found[0], found[2]))
            for host in ("h1", "h2"):
                step = f"{host}: would put {host} into aggregate perfvm-elastic-2"
                self.assertIn(step, found[1])
        self.assertEqual({}, self.changed)

    def test_unenroll(self):
        status, stdout, _ = self.run_on("unenroll", "h1", "h2", "--yes")
        self.assertEqual(
            (0, ["h1: nothing to do", "h2: nothing to do"]), (status, stdout)
        )
        self.assertEqual({}, self.changed)

    def test_children_that_stay(self):
        children = [Provider(c, f"h5_perfvm_{c}", 1) for c in "ab"]
        self.answer("live_hosts.detached_children", children)
        _, stdout, _ = self.run_on("unenroll", "h1", "h5", "--yes")
        (said,) = (line for line in stdout if "empty" in line)
        self.assertTrue(said.startswith("2 empty providers will stay"), said)
        self.assertTrue(said.endswith("the providers are of h5"), said)

    def test_ctrl_c(self):
        def interrupt(work, items, workers, interrupted):
            interrupted()
            yield from ()
            raise KeyboardInterrupt

        self.useFixture(
            fixtures.MonkeyPatch("nova_perfvm.osc.changing.each", interrupt)
        )
        status, _, stderr = self.run_on("enroll", "h1", "h2", "--yes")
        self.assertEqual(130, status)
        self.assertIn("interrupted: finishing the hosts that were begun", stderr[-1])
