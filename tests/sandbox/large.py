# SPDX-License-Identifier: Apache-2.0
"""Servers by the thousand: a few that run, and copies of them in the databases.

Nova and Placement show a copy as they show what it was copied from.  No
hypervisor has it, which nova-compute only notes in its log.
"""

import uuid

import sqlalchemy as sa

_TABLES = {
    "nova_cell1": (
        "instances",
        "block_device_mapping",
        "instance_extra",
        "instance_info_caches",
        "instance_system_metadata",
    ),
    "nova_api": ("instance_mappings", "request_specs"),
}
_AT_ONCE = 100
_PLACEMENT = "1.36"


class Copies:
    """Copies of servers, and how to be rid of them."""

    def __init__(self, sandbox):
        self._url = sandbox.settings.database_url
        self._databases = [
            (sa.create_engine(self._url(name)), tables)
            for name, tables in _TABLES.items()
        ]
        self._placement = sandbox.connect().placement
        self._copies = []

    def make(self, server, hosts):
        """Copy a server that runs, once for each name of a host."""
        copies = [(str(uuid.uuid4()), host) for host in hosts]
        for engine, tables in self._databases:
            with engine.begin() as connection:
                for name in tables:
                    table = _reflected(connection, name)
                    rows = _rows(connection, table, server)
                    changed = [
                        _changed(row, server, *copy) for copy in copies for row in rows
                    ]
                    if name == "instances":
                        _place(connection, changed)
                    if changed:
                        connection.execute(table.insert(), changed)
        self._copies += [copy for copy, _ in copies]
        self._allocate(server, copies)

    def remove(self):
        """Take all copies away."""
        for engine, tables in self._databases:
            keys = {name: _key(name) for name in reversed(tables)}
            self._delete(engine, keys)
        engine = sa.create_engine(self._url("placement"))
        self._delete(engine, {"allocations": "consumer_id", "consumers": "uuid"})
        self._copies.clear()

    def _delete(self, engine, keys):
        with engine.begin() as connection:
            for name, key in keys.items():
                table = _reflected(connection, name)
                mine = table.c[key].in_(self._copies)
                connection.execute(table.delete().where(mine))
        engine.dispose()

    def _allocate(self, server, copies):
        """Give each copy what the original has, on the copy's host."""
        held = self._get(f"/allocations/{server}")
        ((_, taken),) = held["allocations"].items()
        providers = {
            found["name"]: found["uuid"]
            for found in self._get("/resource_providers")["resource_providers"]
        }
        bodies = {
            copy: {
                "allocations": {providers[host]: {"resources": taken["resources"]}},
                "consumer_generation": None,
                "project_id": held["project_id"],
                "user_id": held["user_id"],
            }
            for copy, host in copies
        }
        for start in range(0, len(copies), _AT_ONCE):
            names = list(bodies)[start : start + _AT_ONCE]
            answer = self._placement.post(
                "/allocations",
                json={name: bodies[name] for name in names},
                microversion=_PLACEMENT,
            )
            if answer.status_code != 204:
                raise AssertionError(answer.text)

    def _get(self, path):
        return self._placement.get(path, microversion=_PLACEMENT).json()


def _reflected(connection, name):
    return sa.Table(name, sa.MetaData(), autoload_with=connection, resolve_fks=False)


def _key(name):
    return "uuid" if name == "instances" else "instance_uuid"


def _rows(connection, table, server):
    query = table.select().where(table.c[_key(table.name)] == server)
    return [dict(row) for row in connection.execute(query).mappings()]


def _changed(row, server, copy, host):
    """Return a row of a server as it would be of a copy on a host."""
    found = {
        column: value.replace(server, copy) if isinstance(value, str) else value
        for column, value in row.items()
        if column != "id"
    }
    if "attachment_id" in row:
        # A block device has an identity of its own.
        found["uuid"] = str(uuid.uuid4())
    if "node" in row:
        found |= {
            "host": host,
            "node": host,
            "launched_on": host,
            "display_name": f"copy-{copy}",
        }
    return found


def _place(connection, rows):
    """Name the compute node of each instance."""
    query = sa.text("SELECT host, id FROM compute_nodes WHERE deleted = 0")
    ids = dict(connection.execute(query).all())
    for row in rows:
        row["compute_id"] = ids[row["host"]]
