# SPDX-License-Identifier: Apache-2.0
"""What administrators and tenants do with servers and hosts, at random.

An operation returns False when there is nothing that it could be done to.
"""

import collections
import contextlib

from nova.tests.functional.api.client import OpenStackApiException

from tests.cloud.servers import BootedServer
from tests.embedded import ActionFailedError

RUNS = ("ACTIVE", "SHUTOFF")
ON_HOST = (*RUNS, "SHELVED", "ERROR")
ANY = (*ON_HOST, "VERIFY_RESIZE", "SHELVED_OFFLOADED")
# How Nova words that no host takes a server, or this one does not.
REFUSALS = (
    "No valid host",
    "NoValidHost",
    # Every host that was left refused: nova-compute counts CPUs of a server that was
    # deleted where it had just arrived until its next periodic task.
    "Exceeded maximum number of retries",
    "move cannot be forced",
    # nova-compute itself, of a host that the scheduler was not asked about.
    "Insufficient compute resources",
    # nova-conductor, of a forced move to a host without memory for it.
    "Lack of memory",
    # A server that was stopped when its evacuation was refused is "active" again.
    "in power_state shutdown",
)
# Bad request, forbidden, not found, conflict
REFUSING_STATUSES = {400, 403, 404, 409}


class RefusedError(Exception):
    """Nova did not do it, and says so as it should."""


class UnexpectedError(Exception):
    """It failed for a reason that is none of ours, or was not refused."""


@contextlib.contextmanager
def refusing():
    """Tell refusals from failures."""
    try:
        yield
    except OpenStackApiException as error:
        if error.response.status_code in REFUSING_STATUSES:
            raise RefusedError(str(error)) from error
        raise
    except ActionFailedError as error:
        check_fault(error.detail, str(error))
        raise RefusedError(str(error)) from error


def check_fault(text, of):
    """Look that a fault is one that is to be expected."""
    if not any(words in text for words in REFUSALS):
        raise UnexpectedError(f"{of}: {text}")


class Steps:
    """The operations of a run.

    :param test: a clouds.Cloud
    :param rng: where chance comes from
    :param judge: the verdict.Judge, who knows the servers
    :ivar down: names of the hosts that are down
    """

    def __init__(self, test, rng, judge):
        self.judge = judge
        self.test = test
        self.rng = rng
        self.cloud = test.cloud
        self.servers = test.cloud.servers
        self.down = set()
        # What the operation under way is done to, for the report.
        self.told = ""
        self._sources = {}
        # What is allocated to these on the host that is down, Nova takes away when
        # the host is back, from the server: where a resize that waits to be confirmed
        # holds it instead (replace_allocation_with_migration), it stays.
        self._evacuated = set()

    # What there is

    def hosts(self, *, up=True):
        return [name for name in self.test.hosts if not (up and name in self.down)]

    def host(self, *, but=None, up=True):
        """Return a host, but not that of this server.

        Every other time it is the emptiest, or few would find room.
        """
        own = but.host if but else None
        hosts = [host for host in self.hosts(up=up) if host != own]
        self.rng.shuffle(hosts)
        if self.rng.random() < 1 / 2:
            return hosts[0]
        return self._emptiest(hosts)

    def _emptiest(self, hosts):
        taken = collections.Counter(server.host for server in self.judge.found.values())
        return min(hosts, key=lambda host: taken[host])

    def likely_host(self, server):
        """Return the host that likeliest has room for it.

        That is the emptiest of those up that run servers of its class.
        """
        kind = server.flavor.partition(".")[0]
        alike = {
            found.host
            for found in self.listed(*ON_HOST)
            if found.flavor.partition(".")[0] == kind
        }
        return self._emptiest(sorted(alike) or [self.host()])

    def flavor(self, start="", but=None):
        """Return a flavor of such a name, but not that of this server."""
        own = but.flavor if but else None
        names = [n for n in self.test.flavors if n.startswith(start) and n != own]
        return self.rng.choice(names)

    def listed(self, *statuses, down=False):
        """Return servers of these statuses, by name.

        :param down: of hosts that are down; False: of all others
        """
        found = self.judge.found.values()
        return sorted(
            (
                server
                for server in found
                if server.status in statuses and (server.host in self.down) == down
            ),
            key=lambda server: [*map(int, server.name.removeprefix("vm").split("-"))],
        )

    def pick(self, *statuses, down=False):
        """Return one of these servers, None if there is none."""
        found = self.listed(*statuses, down=down)
        if not found:
            return None
        server = self.rng.choice(found)
        self.told = f"{server.name} {server.flavor} {server.status} on {server.host}"
        return BootedServer(
            server.id, server.name, server.status, server.host, server.flavor
        )

    # Creation

    def boot_high(self):
        return self.boot(self.flavor("hp."))

    def boot_general(self):
        return self.boot(self.flavor("g."))

    def boot_on_named_host(self):
        return self.boot(self.flavor(), host=self.host(up=False))

    def boot_on_forced_host(self):
        return self.boot(self.flavor(), az=f"nova:{self.host()}")

    def boot_several(self):
        return self.boot(self.flavor(), count=self.rng.choice((2, 3)))

    def boot(self, flavor, **options):
        self.told = f"{flavor} {options}"
        if not flavor.startswith("hp."):
            # The high-performance class has no root disk to resize it to.
            options.setdefault("from_volume", self.rng.random() < 0.5)
        with refusing():
            found = self.cloud.boot(flavor, **options)
        return self.booted(found if isinstance(found, list) else [found])

    def boot_at_once(self):
        flavors = [self.flavor() for _ in range(self.rng.choice((2, 3)))]
        self.told = " ".join(flavors)
        with refusing():
            return self.booted(self.cloud.boot_at_once(flavors))

    def booted(self, servers):
        """Look why servers were refused, unless all run."""
        faults = [server.fault for server in servers if server.status != "ACTIVE"]
        for fault in faults:
            check_fault(fault, self.told)
        if len(faults) == len(servers):
            raise RefusedError(faults[0])
        return True

    # Deletion

    def delete(self):
        return self.act(self.servers.delete, self.pick(*ANY))

    def delete_on_failed_host(self):
        return self.act(self.servers.delete, self.pick(*ON_HOST, down=True))

    def act(self, method, server, *args, **options):
        """Do something to a server, if there is one."""
        if server is None:
            return False
        self.told += " ".join(["", *map(str, args), *map(str, options)])
        with refusing():
            method(server, *args, **options)
        return True

    # Moves

    def resize(self):
        server = self._to_leave()
        return self.act(self.servers.resize, server, self.flavor(but=server))

    def confirm(self):
        return self.act(self.servers.confirm, self.pick("VERIFY_RESIZE"))

    def revert(self):
        return self.act(self.servers.revert, self.pick("VERIFY_RESIZE"))

    def cold_migrate(self):
        server = self._to_leave()
        return self.act(self.servers.cold_migrate, server, *self._to(server))

    def _to_leave(self):
        """Return a server, and remember the host that it can go back to."""
        server = self.pick(*RUNS)
        if server is None or server.id in self._evacuated:
            return None
        self._sources[server.id] = server.host
        return server

    def _to(self, server):
        """Name a host, even one that is down, every other time."""
        return [self.host(but=server, up=False)] if self.rng.random() < 1 / 2 else []

    def live_migrate(self):
        server = self.pick("ACTIVE")
        return self.act(self.servers.live_migrate, server, *self._to(server))

    def live_migrate_forced(self):
        server = self.pick("ACTIVE")
        host = self.host(but=server)
        return self.act(self.servers.live_migrate, server, host, force=True)

    def shelve(self):
        # What boots from a volume is offloaded at once.
        then = ("SHELVED", "SHELVED_OFFLOADED")
        return self.act(self.servers.act, self.pick(*RUNS), {"shelve": None}, *then)

    def offload(self):
        return self.act(self.servers.shelve, self.pick("SHELVED"), "shelveOffload")

    def unshelve(self):
        server = self.pick("SHELVED", "SHELVED_OFFLOADED")
        to = self._to(None) if server and server.status != "SHELVED" else ()
        return self.act(self.servers.unshelve, server, *to)

    # Without a move

    def rebuild(self):
        image = self.cloud.create_image()
        return self.act(self.servers.rebuild, self.pick(*RUNS), image)

    def stop_or_start(self):
        server = self.pick(*RUNS)
        running = server is not None and server.status == "ACTIVE"
        action, then = ("os-stop", "SHUTOFF") if running else ("os-start", "ACTIVE")
        return self.act(self.servers.act, server, {action: None}, then)

    def reset_state(self):
        """Take a server that a refused move left in ERROR for what it is: running."""
        server = self.pick("ERROR")
        if server is None or server.host is None:
            return False
        body = {"os-resetState": {"state": "active"}}
        self.cloud.api.post_server_action(server.id, body)
        return True

    # Hosts

    def fail_host(self):
        moving = self.listed("VERIFY_RESIZE")
        used = {s.host for s in moving} | {self._sources[s.id] for s in moving}
        # One that has servers, so that there is something to evacuate.
        hosts = sorted({s.host for s in self.listed(*ON_HOST)} - used - {None})
        if self.down or not hosts:
            return False
        self.told = self.rng.choice(hosts)
        self.cloud.fail_host(self.told, stop=True)
        self.down.add(self.told)
        return True

    def evacuate(self):
        return self._evacuate(self._left_behind())

    def evacuate_to_host(self):
        server = self._left_behind()
        # Every other time, or few would find room; else any, even one that is down.
        likely = server and self.rng.random() < 1 / 2
        host = self.likely_host(server) if likely else self.host(up=False)
        return self._evacuate(server, host)

    def evacuate_forced(self):
        return self._evacuate(self._left_behind(), self.host(), force=True)

    def _left_behind(self):
        return self.pick(*RUNS, "ERROR", down=True)

    def _evacuate(self, server, *args, **options):
        done = self.act(self.servers.evacuate, server, *args, **options)
        if done:
            self._evacuated.add(server.id)
        return done

    def recover_host(self):
        if not self.down:
            return False
        self.told = self.down.pop()
        self.cloud.recover_host(self.told)
        self._evacuated.clear()
        return True

    def restart_compute(self):
        self.told = self.host()
        self.cloud.restart_host(self.told)
        return True

    def run_periodics(self):
        self.cloud.run_periodics()
        return True


# How often each is done, as against the others.
WEIGHTS = {
    Steps.boot_high: 9,
    Steps.boot_general: 7,
    Steps.boot_on_named_host: 4,
    Steps.boot_on_forced_host: 5,
    Steps.boot_several: 3,
    Steps.boot_at_once: 3,
    Steps.delete: 8,
    Steps.delete_on_failed_host: 3,
    Steps.resize: 7,
    Steps.confirm: 6,
    Steps.revert: 4,
    Steps.cold_migrate: 8,
    Steps.live_migrate: 8,
    Steps.live_migrate_forced: 5,
    Steps.shelve: 4,
    Steps.offload: 4,
    Steps.unshelve: 7,
    Steps.rebuild: 3,
    Steps.stop_or_start: 7,
    Steps.reset_state: 4,
    Steps.fail_host: 3,
    Steps.evacuate: 5,
    Steps.evacuate_to_host: 5,
    Steps.evacuate_forced: 8,
    Steps.recover_host: 3,
    Steps.restart_compute: 1,
    Steps.run_periodics: 5,
}
