# SPDX-License-Identifier: Apache-2.0
"""From the survey of a cloud with general VMs to its first high-performance VM."""

import contextlib
import html
import pathlib
import re
import shlex

import fixtures

from nova_perfvm.policy import loader
from tests import console
from tests.cloud import DEFAULT_FILTERS
from tests.embedded import FILTERS_WITHOUT_PERFVM
from tests.functional import base, client

# What an operator types, from the survey to the first VM.
MOST_COMMANDS = 30


class TestFirstVM(client.ClientMixin, base.FunctionalTest):
    """Three hosts without CPU sets, with a VM on each; two of them can be emptied."""

    CLOUD = None
    FLAVORS = ()
    POLICY = None
    PATIENCE = 2

    def setUp(self):
        super().setUp()
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).join("perfvm.yaml"))
        path.write_text(loader.dump(loader.load()))
        self.start_cloud(enabled_filters=FILTERS_WITHOUT_PERFVM, policy_file=str(path))
        self.cloud.create_flavor("plain", 2, 4096, 20, {})
        for number in (1, 2, 3):
            self.cloud.start_host(f"h{number}")
            self.boot("plain", host=f"h{number}")
        self.policy_file = path
        self.typed = 0

    def type_in(self, line):
        """Run a line as an operator does; return its exit status and its messages."""
        program, *words = shlex.split(line, comments=True)
        self.typed += 1
        with contextlib.chdir(self.policy_file.parent):
            if program == "openstack":
                status, _, said = self.run_client(*words, stdin=client.Operator())
            else:
                status, _, said = console.run(*words)
        return status, said

    def steps(self, page):
        """Return the commands of the page's steps."""
        _, _, way = page.partition("<h2>The way there")
        blocks = re.findall(r"<pre>(.*?)</pre>", way, re.DOTALL)
        return html.unescape("\n".join(blocks)).splitlines()

    def test_from_the_survey_to_the_first_vm(self):
        with contextlib.chdir(self.policy_file.parent):
            survey = ("survey", "-f", "html", "--policy-out", "perfvm.yaml")
            _, page, said = self.run_command(*survey)
        self.typed += 1
        self.assertIn(
            "4 more on 2 hosts that can be emptied in this order: h1, h2", said
        )
        self.assertIn("write the volume_type before flavor sync", said)

        # Cinder is not there to tell a type: nothing takes the policy before.
        for line in (
            "nova-perfvm policy check perfvm.yaml",
            "openstack perfvm flavor sync --policy perfvm.yaml --yes",
        ):
            status, said = self.type_in(line)
            self.assertNotEqual(0, status, line)
            self.assertIn("expected the name of a volume type of Cinder", said)
        text = self.policy_file.read_text()
        self.policy_file.write_text(text.replace("CHOOSE_A_VOLUME_TYPE", "nvme-tcp"))

        policy, last = loader.load(self.policy_file), ""
        for shown in self.steps(page):
            again = shown.startswith("# then the same with --execute")
            line = f"{last} --execute --yes" if again else shown
            if not line.startswith(("openstack ", "nova-perfvm ")):
                continue
            last = line
            status, said = self.type_in(line)
            # An audit ends by what else it finds: there is no Glance.
            self.assertLess(status, 2 if " audit " in line else 1, f"{line}: {said}")
            if "host config" in line:
                self.cloud.restart_configured(line.split()[-1], policy, "dedicated")
            elif "flavor sync" in line:
                self.cloud.restart_scheduler(DEFAULT_FILTERS)

        flavors = {one["name"]: one["id"] for one in self.cloud.api.get_flavors()}
        (vm_class,) = policy.pinned_classes
        server = self.boot(flavors[vm_class.flavor_names[-1]], from_volume=True)
        self.typed += 1
        self.assert_high_performance(server)
        self.assertIn(server.host, {"h1", "h2"})
        # General VMs of old and new flavors go elsewhere.
        for name in ("plain", *policy.default_class.flavor_names):
            self.assertEqual("h3", self.boot(flavors[name]).host, name)
        self.assertLessEqual(self.typed, MOST_COMMANDS)
