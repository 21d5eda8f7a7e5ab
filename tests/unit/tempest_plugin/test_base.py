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
    def free(self, *used):
        self.configure()
        case = self.make(hypervisors=Hypervisors(*used))
        self.conf.compute.build_timeout = 10 * (len(used) - 1)
        return case.await_free(["a", "b"])

    def test_what_is_taken_is_waited_for(self):
        self.assertEqual(["a"], self.free({"a": 0, "b": 20, "c": 7}))
        self.assertEqual(["a", "b"], self.free({"a": 3, "b": 20}, {"a": 0, "b": 0}))


class WaitTest(PluginCase):
    def wait(self, *answers):
        self.configure()
        self.conf.compute.build_timeout = 10
        shown = [
            {"OS-EXT-STS:task_state": task, "status": status, **more}
            for task, status, more in answers
        ]
        client = SimpleNamespace(show_server=lambda _: {"server": shown.pop(0)})
        case = self.make(servers=client)
        return case.wait("s", "ACTIVE"), len(shown)

    def test_until_it_is_idle_and_says_why_it_failed(self):
        fault = {"fault": {"message": "No valid host was found."}}
        busy, active = ("migrating", "ACTIVE", {}), (None, "ACTIVE", {})
        silent, failed = (None, "ERROR", {}), (None, "ERROR", fault)
        building = ("scheduling", "BUILD", {})
        for answers, status in (
            ((building, silent, failed, active), "ERROR"),
            ((busy, active, silent), "ACTIVE"),
        ):
            found, left = self.wait(*answers)
            self.assertEqual((status, 1), (found["status"], left))


class ExclusiveTest(PluginCase):
    def case(self, exclusive):
        self.configure(exclusive=exclusive)
        asked = []
        return asked, self.make(
            boot_refused=lambda _, flavor, host: asked.append((flavor, host))
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

    def show_quota_set(self, project):
        return {"quota_set": {"id": project, **DEFAULTS, **self.own}}

    def update_quota_set(self, _, *, force, **limits):
        assert force
        self.own.update(limits)


class QuotasTest(PluginCase):
    def test_they_are_lifted_and_put_back(self):
        self.configure()
        quotas = Quotas(cores=40)
        case = self.make(quotas=quotas)
        cleanups = []
        type(case).addClassResourceCleanup = lambda *args, **kwargs: cleanups.append(
            (args, kwargs)
        )
        case._lift_quotas("p")
        shown = quotas.show_quota_set("p")["quota_set"]
        self.assertEqual({-1}, {shown[n] for n in ("cores", "instances", "ram")})
        (((function, *args), kwargs),) = cleanups
        function(*args, **kwargs)
        self.assertEqual({"cores": 40, "instances": 10, "ram": 51200}, quotas.own)
