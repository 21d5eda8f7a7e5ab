# SPDX-License-Identifier: Apache-2.0
"""The databases of Nova and of each scheme's Placement, filled in bulk."""

import contextlib
import multiprocessing
import string
import sys
import uuid

import pymysql

from nova_perfvm.placement.schemes import units
from tests.benchmark.database import Database
from tests.benchmark.scheduling import rows
from tests.benchmark.scheduling.flavors import PROJECT, USER, policy

CELL = "nova_cell1"
# Servers are told apart from providers by nothing else than where they are.
_AGGREGATE = "74c43bd5-c4ee-4a6b-a174-46e6e7d9decb"
_NOVA_TABLES = {
    CELL: ("compute_nodes", "services"),
    "nova_api": ("aggregates", "aggregate_hosts", "aggregate_metadata"),
}
_PLACEMENT_TABLES = (
    *("allocations", "consumers", "projects", "users", "inventories"),
    *("resource_provider_traits", "resource_provider_aggregates"),
    *("placement_aggregates", "resource_providers"),
)
# More in one statement makes it no faster.
_BATCH = 5000


def placement_database(scheme):
    """Return the name of the database of a scheme's Placement."""
    # What the filter alone does, it does to the same cloud.
    if scheme in {"stock", "filter"}:
        return "placement"
    return f"placement_{scheme.rstrip(string.digits)}"


class Databases(Database):
    """A MariaDB with a Nova, and a Placement for each scheme."""

    def __enter__(self):
        super().__enter__()
        try:
            for scheme in ("slots", "units", "cells"):
                name = placement_database(scheme)
                self.execute(
                    f"CREATE DATABASE {name}",
                    f"GRANT ALL ON {name}.* TO 'openstack'@'127.0.0.1'",
                )
            for database in ("api", "main"):
                self._make_nova(database)
            self.execute(
                "INSERT INTO nova_api.cell_mappings (uuid, name, transport_url,"
                " database_connection, disabled) VALUES"
                f" ('{uuid.uuid4()}', 'cell1', 'fake:/', '{self.url(CELL)}', 0)",
                "COMMIT",
            )
        except BaseException:
            self.__exit__(None)
            raise
        return self

    def _make_nova(self, database):
        # In a process of its own: Nova's configuration is global.
        path = self.layout.etc / "nova-manage.conf"
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            f"[DEFAULT]\nlog_file = {self.layout.logs}/nova-manage.log\n"
            f"[database]\nconnection = {self.url(CELL)}\n"
            f"[api_database]\nconnection = {self.url('nova_api')}\n",
            encoding="utf-8",
        )
        child = multiprocessing.get_context("fork").Process(
            target=_sync, args=(database, str(path))
        )
        child.start()
        child.join()
        if child.exitcode:
            sys.exit(f"Nova's tables ({database}) could not be made")

    def connect(self, database):
        """Return a connection to one database; the caller commits."""
        return contextlib.closing(
            pymysql.connect(
                user="root",
                unix_socket=str(self.layout.database_socket),
                database=database,
                charset="utf8mb4",
            )
        )

    def fill_nova(self, pool, guests):
        """Write the compute nodes of a pool in the place of those before."""
        self._empty(_NOVA_TABLES)
        now = rows.now()
        numbers = range(len(guests))
        with self.connect(CELL) as cell:
            _insert(cell, "services", (rows.service(n, now) for n in numbers))
            _insert(
                cell,
                "compute_nodes",
                (rows.compute_node(pool, n, guests[n], now) for n in numbers),
            )
            cell.commit()
        with self.connect("nova_api") as api:
            if "units" in pool.schemes:
                _insert(api, "aggregates", [{"id": 1, "uuid": _AGGREGATE, "name": "e"}])
                key = f"trait:{units.UNITS.enrolled_trait(policy('units'))}"
                metadata = {"aggregate_id": 1, "key": key, "value": "required"}
                _insert(api, "aggregate_metadata", [metadata])
                hosts = (
                    {"aggregate_id": 1, "host": rows.host_name(n)} for n in numbers
                )
                _insert(api, "aggregate_hosts", hosts)
            api.commit()

    def fill_placement(self, pool, scheme, guests):
        """Write providers and allocations of a pool in the place of those before.

        Placement has made its tables, and knows the resource classes and traits.
        """
        name = placement_database(scheme)
        self._empty({name: _PLACEMENT_TABLES})
        with self.connect(name) as connection:
            Providers(connection).write(pool, scheme, guests)
            connection.commit()

    def _empty(self, tables):
        self.execute(
            "SET FOREIGN_KEY_CHECKS = 0",
            *(
                f"TRUNCATE {db}.{table}"
                for db, names in tables.items()
                for table in names
            ),
        )


class Providers:
    """Rows of Placement, numbered here."""

    def __init__(self, connection):
        self._connection = connection
        self._classes = self._ids("resource_classes")
        self._traits = self._ids("traits")
        self._rows, self._now = {}, rows.now()

    def write(self, pool, scheme, guests):
        """Write the providers of all hosts, and what their guests have of them."""
        self._add("projects", {"id": 1, "external_id": PROJECT})
        self._add("users", {"id": 1, "external_id": USER})
        if scheme == "units":
            self._add("placement_aggregates", {"id": 1, "uuid": _AGGREGATE})
        inventories = rows.inventories(pool, scheme)
        traits = rows.traits_of(pool, scheme)
        ids = {}
        for number, here in enumerate(guests):
            root = len(ids) + 1
            host = rows.host_uuid(number)
            ids[host] = root
            self._provider(root, host, rows.host_name(number), root, None)
            self._has(root, inventories, traits)
            if scheme == "units":
                isolated = {"resource_provider_id": root, "aggregate_id": 1}
                self._add("resource_provider_aggregates", isolated)
            for child_uuid, child in rows.children(scheme, number).items():
                ids[child_uuid] = len(ids) + 1
                self._provider(ids[child_uuid], child_uuid, child.name, root, root)
                has = {
                    name: rows.inventory(each.total, max_unit=each.max_unit)
                    for name, each in child.inventories.items()
                }
                self._has(ids[child_uuid], has, {child.trait})
            for consumer, claimed in rows.allocations(pool, scheme, number, here):
                self._consumer(consumer, claimed, ids)
        for table, found in self._rows.items():
            _insert(self._connection, table, found)

    def _add(self, table, row):
        made = {"created_at": self._now, "updated_at": self._now}
        self._rows.setdefault(table, []).append(made | row)

    def _provider(self, number, provider, name, root, parent):
        row = {"id": number, "uuid": provider, "name": name, "generation": 5}
        row |= {"root_provider_id": root, "parent_provider_id": parent}
        self._add("resource_providers", row)

    def _has(self, provider, inventories, traits):
        for name, amounts in inventories.items():
            row = {"resource_provider_id": provider}
            row["resource_class_id"] = self._classes[name]
            self._add("inventories", row | amounts)
        for trait in traits:
            row = {"resource_provider_id": provider, "trait_id": self._traits[trait]}
            self._add("resource_provider_traits", row)

    def _consumer(self, consumer, claimed, ids):
        row = {"uuid": consumer, "project_id": 1, "user_id": 1, "generation": 1}
        self._add("consumers", row)
        for provider, taken in claimed.items():
            for name, amount in taken.items():
                row = {"resource_provider_id": ids[provider], "consumer_id": consumer}
                row |= {"resource_class_id": self._classes[name], "used": amount}
                self._add("allocations", row)

    def _ids(self, table):
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT name, id FROM {table}")
            return dict(cursor.fetchall())


def _insert(connection, table, found):
    found = list(found)
    if not found:
        return
    columns = list(found[0])
    names = ", ".join(f"`{column}`" for column in columns)
    values = ", ".join(["%s"] * len(columns))
    with connection.cursor() as cursor:
        for first in range(0, len(found), _BATCH):
            cursor.executemany(
                f"INSERT INTO {table} ({names}) VALUES ({values})",
                [[row[c] for c in columns] for row in found[first : first + _BATCH]],
            )


def _sync(database, path):
    """Make the tables of one of Nova's databases."""
    from nova import config
    from nova.db import migration

    config.parse_args(["nova-manage", "--config-file", path])
    migration.db_sync(database=database)
