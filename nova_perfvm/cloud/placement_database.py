# SPDX-License-Identifier: Apache-2.0
"""Placement's database, asked for what no API shows; runs on a controller.

One session is made as Placement makes its own: from the connection and its
parameters in placement.conf, as the same user.  So it has what that user's sessions
have, wherever it was set: by the server, for the user, or in the connection.
Nothing is written, and no text has the password.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote_plus

from nova_perfvm.facts.placement_database import PlacementDatabase

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Connection

_GROUP: Final = "placement_database"
_TIMEOUT_S: Final = 5
_KNOWN: Final = ("mysql", "mariadb")
_VARIABLES: Final = (
    "version",
    "version_comment",
    # The name of MariaDB before 11.1, and of all others.
    "tx_isolation",
    "transaction_isolation",
    "innodb_snapshot_isolation",
)


class _UnreadError(Exception):
    """Why it cannot be read, in words without secrets."""


def read(path: str) -> PlacementDatabase:
    """Read what sessions of Placement have.

    :param path: of placement.conf
    :returns: with the reason in ``unread`` when there is no way in
    """
    try:
        return _ask(_url(path))
    except _UnreadError as exc:
        return PlacementDatabase(unread=str(exc))


def _url(path: str) -> URL:
    """Return the address of the database, with its parameters."""
    # Other commands start faster without it.
    from oslo_config import cfg  # noqa: PLC0415

    conf = cfg.ConfigOpts()
    conf.register_opts(
        [cfg.StrOpt("connection"), cfg.StrOpt("connection_parameters", default="")],
        _GROUP,
    )
    try:
        conf([], default_config_files=[path], default_config_dirs=[], use_env=False)
        connection = conf[_GROUP].connection
        parameters = conf[_GROUP].connection_parameters
    except cfg.Error as exc:
        # Its text may have the line.
        raise _UnreadError(
            f"{path} cannot be read as Placement reads it ({type(exc).__name__})"
        ) from None
    if not connection:
        raise _UnreadError(f"{path} has no [{_GROUP}]connection")
    try:
        from sqlalchemy.engine import make_url  # noqa: PLC0415
    except ImportError:
        raise _UnreadError("SQLAlchemy is not installed here") from None
    wrong = f"[{_GROUP}]connection in {path} is no URL of a database"
    try:
        url = make_url(connection)
        if parameters:
            url = url.update_query_string(parameters, append=True)
    except Exception:  # noqa: BLE001
        # Some name what they were given, a password among it.
        raise _UnreadError(wrong) from None
    if "@" in (url.host or ""):
        raise _UnreadError(f"{wrong}: write @ in a password as %40")
    return url


def _ask(url: URL) -> PlacementDatabase:
    from sqlalchemy import create_engine, exc, pool  # noqa: PLC0415

    if url.get_backend_name() not in _KNOWN:
        # Opening a file that is not there would make it.
        raise _UnreadError(f"{url.get_backend_name()} is none of {', '.join(_KNOWN)}")
    try:
        engine = create_engine(
            url, poolclass=pool.NullPool, connect_args={"connect_timeout": _TIMEOUT_S}
        )
        with engine.connect() as connection:
            return _variables(connection)
    except ImportError as error:
        raise _UnreadError(f"the driver {error.name} is not installed here") from None
    except exc.NoSuchModuleError:
        raise _UnreadError(f"there is no driver {url.drivername}") from None
    except Exception as error:  # noqa: BLE001
        address = url.set(query={})
        raise _UnreadError(
            f"no session with {address}: {_described(error, url)}; run this where "
            "Placement runs"
        ) from None


def _variables(connection: Connection) -> PlacementDatabase:
    names = ", ".join(f"'{name}'" for name in _VARIABLES)
    rows = connection.exec_driver_sql(
        f"SHOW SESSION VARIABLES WHERE Variable_name IN ({names})"
    )
    found = {str(name).lower(): str(value) for name, value in rows}
    level = found.get("transaction_isolation") or found["tx_isolation"]
    snapshot = found.get("innodb_snapshot_isolation")
    return PlacementDatabase(
        server=f"{found.get('version_comment', '')} {found['version']}".strip(),
        isolation_level=level.replace("-", " ").upper(),
        snapshot_isolation=None if snapshot is None else snapshot == "ON",
    )


def _described(error: Exception, url: URL) -> str:
    """Return what the driver says, its kind alone if a secret is in it."""
    cause = getattr(error, "orig", None) or error
    kind, text = type(cause).__name__, " ".join(str(part) for part in cause.args)
    # A password may be among the parameters, too.
    values = [v for vs in url.normalized_query.values() for v in vs]
    secrets = [v for v in (url.password, *values) if v]
    if not text or any(v in text or quote_plus(v) in text for v in secrets):
        return kind
    return f"{kind}: {text.splitlines()[0]}"
