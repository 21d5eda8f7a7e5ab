# SPDX-License-Identifier: Apache-2.0

import unittest
from types import SimpleNamespace

from tests.unit.tempest_plugin.cases import PluginCase

DEFAULTS = {"cores": 20, "instances": 10, "ram": 51200, "key_pairs": 100}


class Hypervisors:
    """Tempest's client, with {host: vcpus_used} of each answer in turn."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def list_hypervisors(self, *, detail):
        used = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return {
            "hypervisors": [
                {"id": f"{host}-id", "service": {"host": host}, "vcpus_used": vcpus}
                for host, vcpus in used.items()
            ]
        }


class FreeTest(PluginCase):
    def free(self, reserved, *used):
        self.configure()
        case = self.make(
            "api.test_hosts",
            "HostsTest",
            "test_cap",
            hypervisors=Hypervisors(*used),
            providers=SimpleNamespace(
                list_resource_provider_inventories=lambda provider: {
                    "inventories": reserved[provider]
                }
            ),
        )
        self.conf.compute.build_timeout = 10 * (len(used) - 1)
        return case.await_free(["a", "b"])

    def test_reserved_cpus_are_free(self):
        reserved = {"a-id": {"VCPU": {"reserved": 2}}}
        self.assertEqual(["a", "b"], self.free(reserved, {"a": 2, "b": 0, "c": 7}))

    def test_what_is_taken_is_waited_for(self):
        reserved = {"a-id": {"VCPU": {"reserved": 2}}, "b-id": {"PCPU": {}}}
        taken = {"a": 3, "b": 20}
        self.assertEqual([], self.free(reserved, taken))
        self.assertEqual(["a", "b"], self.free(reserved, taken, {"a": 2, "b": 0}))


class WaitTest(PluginCase):
    def wait(self, *answers):
        self.configure()
        self.conf.compute.build_timeout = 10
        shown = [
            {"OS-EXT-STS:task_state": task, "status": status, **more}
            for task, status, more in answers
        ]
        case = self.make(
            "api.test_hosts",
            "HostsTest",
            "test_cap",
            servers=SimpleNamespace(
                show_server=lambda server: {"server": shown.pop(0)}
            ),
        )
        return case.wait("s", "ACTIVE"), len(shown)

    def test_why_it_failed_comes_after_that_it_did(self):
        fault = {"fault": {"message": "No valid host was found."}}
        found, left = self.wait(
            ("scheduling", "BUILD", {}),
            (None, "ERROR", {}),
            (None, "ERROR", fault),
            (None, "ACTIVE", {}),
        )
        self.assertEqual((fault["fault"], 1), (found["fault"], left))

    def test_what_is_busy_is_waited_for(self):
        found, left = self.wait(
            ("migrating", "ACTIVE", {}), (None, "ACTIVE", {}), (None, "ERROR", {})
        )
        self.assertEqual(("ACTIVE", 1), (found["status"], left))


class ExclusiveTest(PluginCase):
    def case(self, exclusive):
        self.configure(exclusive=exclusive)
        asked = []
        return asked, self.make(
            "api.test_hosts",
            "HostsTest",
            "test_cap",
            boot_refused=lambda _, flavor, host: asked.append((flavor, host)),
        )

    def test_hosts_for_one_class(self):
        asked, case = self.case("host")
        case.need_exclusive_hosts()
        case.assert_closed("g", "a")
        self.assertEqual([("g", "a")], asked)

    def test_hosts_for_both_classes(self):
        for exclusive in ("cell", "none"):
            asked, case = self.case(exclusive)
            case.assert_closed("g", "a")
            self.assertEqual([], asked)
            for test in (
                case.test_general_off_high_performance,
                case.test_high_performance_off_general,
            ):
                self.assertRaisesRegex(
                    unittest.SkipTest, f"exclusive is {exclusive}: ", test
                )


class Quotas:
    """Tempest's client of a project's quotas, as Nova answers."""

    def __init__(self, **own):
        self.own = own

    def show_default_quota_set(self, project):
        return {"quota_set": {"id": project, **DEFAULTS}}

    def show_quota_set(self, project):
        return {"quota_set": {"id": project, **DEFAULTS, **self.own}}

    def update_quota_set(self, _, *, force, **limits):
        assert force
        self.own.update(limits)

    def delete_quota_set(self, _):
        self.own.clear()


class QuotasTest(PluginCase):
    def lift(self, quotas):
        """Lift the quotas, look, and clean up."""
        self.configure()
        case = self.make("api.test_hosts", "HostsTest", "test_cap", quotas=quotas)
        cleanups = []
        type(case).addClassResourceCleanup = lambda *args, **kwargs: cleanups.append(
            (args, kwargs)
        )
        case._lift_quotas("p")
        shown = quotas.show_quota_set("p")["quota_set"]
        self.assertEqual({-1}, {shown[n] for n in ("cores", "instances", "ram")})
        ((function, *args), kwargs), *others = cleanups
        self.assertEqual([], others)
        function(*args, **kwargs)

    def test_a_project_that_follows_the_defaults(self):
        quotas = Quotas()
        self.lift(quotas)
        self.assertEqual({}, quotas.own)

    def test_a_project_with_quotas_of_its_own(self):
        quotas = Quotas(cores=40)
        self.lift(quotas)
        self.assertEqual({"cores": 40, "instances": 10, "ram": 51200}, quotas.own)
