# SPDX-License-Identifier: Apache-2.0
"""Worlds built one after the other, and verdicts on each of their requests."""

import collections
import contextlib
import itertools
import os
import shlex

from nova import context, objects
from nova.conf import CONF
from nova.conf import scheduler as scheduler_options
from oslo_serialization import jsonutils
from testtools.content import text_content

from nova_perfvm.cloud import nova_database
from tests.drawn import cases, cloud, scheduler
from tests.functional import base, client, glance
from tests.functional.test_pci import write_aliases

SEED = int(os.environ.get("PERFVM_RANDOM_SEED", "7"))
CASE = os.environ.get("PERFVM_DRAWN_CASE", "")
# So many disagreements are shown, first of each kind one.
_SHOWN = 40
(NOVAS_DEFAULT,) = (
    option.default
    for option in scheduler_options.filter_scheduler_opts
    if option.name == "enabled_filters"
)


class DrawnCase(client.ClientMixin, base.FunctionalTest):
    """Verdicts on worlds that are drawn, until there are enough of them.

    :cvar VERDICTS: so many are compared, at least
    :cvar HOSTS: of a world
    :cvar CHAPTERS: how often the scheduler of a world is set up anew
    :cvar CASES: requests of a chapter
    """

    CLOUD = None
    VERDICTS = 100
    HOSTS = 8
    CHAPTERS = 3
    CASES = 6
    # Whether hosts that pass with all others are asked about alone, too.
    EACH = False
    PATIENCE = 12

    def setUp(self):
        super().setUp()
        self.glance = self.useFixture(glance.GlanceFixture())
        self.counts = collections.Counter()
        self.found = []

    def compare(self, chapter, case, spec, refused):
        """Ask both about a case; yield each Disagreement.

        :param spec: its RequestSpec, or None
        :param refused: why nova-api refuses it; empty if it does not
        """
        raise NotImplementedError

    def agree(self):
        """Compare verdicts on world after world; fail if some are not Nova's."""
        only = [int(number) for number in CASE.split("/")] if CASE else []
        try:
            for number in only[:1] or itertools.count():
                self.visit(number, only[1:])
                if only or self.counts["verdicts"] >= self.VERDICTS:
                    break
        finally:
            kinds = collections.Counter(kind for kind, *_ in self.found)
            told = f"seed {SEED}: {dict(self.counts)}"
            several = [f"{times} x {kind}" for kind, times in kinds.most_common()]
            # Of each kind the first, then of each request.
            firsts = {kind: text for kind, _, text in reversed(self.found)}
            requests = {found[:2]: found[2] for found in reversed(self.found)}
            texts = [*firsts.values(), *reversed(requests.values())]
            shown = list(dict.fromkeys(texts))[:_SHOWN]
            counted = "\n".join([told, *several])
            self.addDetail("counted", text_content(counted))
            self.addDetail("found", text_content("\n\n".join(shown)))
        self.assertEqual(0, len(self.found), "\n\n".join([counted, *shown]))
        if not only:
            self.assertGreaterEqual(self.counts["taken"], self.VERDICTS // 20, told)

    def visit(self, number, only):
        """Compare verdicts on the requests of a world, or on some of them."""
        size = {"hosts": self.HOSTS, "chapters": self.CHAPTERS, "cases": self.CASES}
        drawn = cases.world(SEED, number, **size)
        with self.built(drawn):
            for chapter in drawn.chapters:
                self.look(drawn, chapter, number, only)

    def look(self, drawn, chapter, number, only):
        """Compare verdicts on the requests of a chapter, or on some of them."""
        chosen = [case for case in chapter.cases if not only or case.number in only]
        if not chosen:
            return
        with self.set_up(drawn, chapter):
            for case in chosen:
                if case.server and not self.started[case.at]:
                    # nova-api has refused to create it.
                    continue
                refused_or_spec = self.request(case)
                for found in self.compare(chapter, case, *refused_or_spec):
                    where = self.where(drawn, chapter, case, number, found)
                    self.found.append((found.kind, f"{number}/{case.number}", where))

    def where(self, drawn, chapter, case, number, found):
        """Return all that a stranger wants to know of a disagreement."""
        names = [found.host] if found.host else []
        command = (
            f"PERFVM_RANDOM_SEED={SEED} PERFVM_DRAWN_CASE={number}/{case.number} "
            "OS_NOVA_DISABLE_EVENTLET_PATCHING=1 "
            f"python -m testtools.run {shlex.quote(self.id())}"
        )
        asked = {
            name: value
            for name in (
                "volume_backed",
                "zone",
                "group",
                "hint",
                "at",
                "server",
                "count",
                "live",
            )
            if (value := getattr(case, name))
        }
        lines = {
            "kind": found.kind,
            "nova": found.nova,
            "ours": found.ours,
            "flavor": cases.told(case.flavor),
            "image": cases.told(case.image),
            "asked": asked,
            "host": [drawn.hosts[name] for name in names],
            "setting": cases.told(chapter.setting),
            "isolated": chapter.setting.get("isolates")
            and {
                "hosts": chapter.isolated,
                "images": sorted(self.images)[:2],
            },
            "aggregates": [
                metadata
                for metadata, hosts in chapter.aggregates
                if not names or names[0] in hosts
            ],
            "disabled": chapter.disabled,
            "down": chapter.down,
            "again": command,
        }
        return "\n".join(f"{name}: {text}" for name, text in lines.items() if text)

    @contextlib.contextmanager
    def built(self, drawn):
        """Start the cloud of a world, with its flavors, images and servers."""
        nova = CONF.filter_scheduler
        # Placement counts either a card or its functions.
        devices = cloud.DEVICES[:2] if drawn.pci_in_placement else cloud.DEVICES
        options = {
            ("filter_scheduler", "available_filters"): [
                *nova.available_filters,
                "nova_perfvm.scheduler.filters.all_filters",
                *cloud.FOREIGN,
            ],
            ("pci", "device_spec"): [jsonutils.dumps(one) for one in devices],
            ("pci", "report_in_placement"): drawn.pci_in_placement,
        }
        # Servers are older than our filter.
        filters = [*NOVAS_DEFAULT, "NUMATopologyFilter", "PciPassthroughFilter"]
        started = cloud.DrawnCloud(
            enabled_filters=filters, policy_file=self.write_policy(), options=options
        )
        with started as self.cloud:
            write_aliases(self, cloud.ALIASES, in_placement=drawn.pci_in_placement)
            self.nova_api = scheduler.Requests(self.cloud)
            self.scheduler = scheduler.Scheduler(self.cloud)
            self.create(drawn)
            yield

    def create(self, drawn):
        """Make in the cloud what was drawn for it."""
        for name in cloud.TRAITS:
            self.admin_api.placement("PUT", f"/traits/{name}")
        for name in cloud.RESOURCE_CLASSES:
            self.admin_api.placement("PUT", f"/resource_classes/{name}")
        for name, shape in drawn.hosts.items():
            self.cloud.start_drawn(name, shape)
        for zone, names in drawn.zones.items():
            self.cloud.aggregate_hosts({"availability_zone": zone}, *names)
        asked = [case for chapter in drawn.chapters for case in chapter.cases]
        flavors = [flavor for flavor, _ in drawn.servers]
        flavors += [case.flavor for case in asked]
        for flavor in {flavor["name"]: flavor for flavor in flavors}.values():
            self.cloud.create_drawn_flavor(flavor)
        images = [case.image for case in asked if case.image is not None]
        self.images = {
            name: self.cloud.create_drawn_image(self.glance, image)
            for name, image in {image["name"]: image for image in images}.items()
        }
        self.started = [self.start(*server) for server in drawn.servers]
        self.vms = [server.id for server in self.started if server and server.host]
        # A server is in one group at most.
        self.groups = {
            policy: self.group(policy, self.vms[n :: len(cases.GROUPS)])
            for n, policy in enumerate(cases.GROUPS)
        }
        for name, shape in drawn.hosts.items():
            self.change_provider(name, shape)
        nodes = nova_database.compute_nodes([])
        self.uuids = {node.host: node.uuid for node in nodes}

    def start(self, flavor, host):
        """Boot a server, which nova-api or the host may refuse; return it, or None."""
        try:
            server = self.cloud.boot(flavor["name"], host=host)
        except scheduler.OpenStackApiException:
            return None
        self.counts[f"servers {server.status}"] += 1
        return server

    def group(self, policy, servers):
        """Make a server group of servers, as if created in it; return its ID."""
        asked = {"name": policy, "policy": policy}
        made = self.cloud.api.post_server_groups(asked)["id"]
        admin = context.get_admin_context()
        objects.InstanceGroup.add_members(admin, made, servers)
        for server in servers:
            spec = objects.RequestSpec.get_by_instance_uuid(admin, server)
            spec.instance_group = objects.InstanceGroup.get_by_uuid(admin, made)
            spec.scheduler_hints = {"group": [made]}
            spec.save()
        return made

    def change_provider(self, name, shape):
        """Set in Placement what its operator has set there."""
        if traits := shape.get("traits"):
            self.change_traits(name, traits)
        if ratios := shape.get("ratios"):
            path = f"/resource_providers/{self.provider(name)}/inventories"
            body = self.admin_api.placement("GET", path)
            for resource, ratio in ratios.items():
                body["inventories"][resource]["allocation_ratio"] = ratio
            self.admin_api.placement("PUT", path, body)

    @contextlib.contextmanager
    def set_up(self, drawn, chapter):
        """Set up the scheduler, and read the cloud as the model sees it."""
        setting, project = chapter.setting, self.cloud.api.project_id
        self.options = {
            (group, name): value
            for group, members in setting.get("options", {}).items()
            for name, value in members.items()
        }
        if setting.get("isolates"):
            isolated = {
                "isolated_hosts": list(chapter.isolated),
                "isolated_images": [
                    self.images[name] for name in sorted(self.images)[:2]
                ],
            }
            self.options |= {("filter_scheduler", k): v for k, v in isolated.items()}
        with contextlib.ExitStack() as after:
            for (group, name), value in self.options.items():
                CONF.set_override(name, value, group)
                after.callback(CONF.clear_override, name, group)
            for metadata, names in chapter.aggregates:
                told = {k: v.replace("PROJECT", project) for k, v in metadata.items()}
                made = self.cloud.aggregate_hosts(told, *names)
                after.callback(self.cloud.delete_aggregate, made)
            if chapter.disabled:
                self.cloud.enable(chapter.disabled, enabled=False)
                after.callback(self.cloud.enable, chapter.disabled, enabled=True)
            if chapter.down:
                self.cloud.fail_host(chapter.down)
                after.callback(self.cloud._force_down, chapter.down, forced_down=False)
            self.filters = cloud.filters_of(setting, NOVAS_DEFAULT)
            self.cloud.restart_scheduler(self.filters)
            self.scheduler.forget()
            self.read()
            yield

    def read(self):
        """Read what is asked before each request of a chapter."""

    def request(self, case):
        """Return what Nova has of a case: a RequestSpec, or why nova-api refuses it."""
        self.hints, self.server = {}, self.started[case.at] if case.server else None
        if self.server:
            return scheduler.stored(self.server), ""
        body = {"flavorRef": case.flavor["name"]}
        image = case.image and self.images[case.image["name"]]
        if case.volume_backed:
            body |= scheduler.volume(image)
        else:
            body["imageRef"] = image
        if case.zone:
            body["availability_zone"] = case.zone
        group = {}
        if case.hint and self.vms:
            self.hints[case.hint] = [self.vms[case.at % len(self.vms)]]
        if case.group:
            group["group"] = self.groups[case.group]
        return self.nova_api.of(f"case{case.number}", body, self.hints | group)
