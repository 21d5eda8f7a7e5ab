# SPDX-License-Identifier: Apache-2.0
"""Read the isolation level of Placement's database sessions, on a controller.

No API shows the level.  The session is opened as Placement opens its own: with the
user, connection and parameters of placement.conf.  So the session has the settings of
Placement's sessions, whether the server, the user or the connection sets them.  Nothing
is written, and no message shows the password.
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
    # MariaDB before 11.1 calls the level tx_isolation, other servers
    # transaction_isolation.
    "tx_isolation",
    "transaction_isolation",
    "innodb_snapshot_isolation",
)


class _UnreadError(Exception):
    """The reason why the database cannot be read, without secrets."""


def read(path: str) -> PlacementDatabase:
    """Return the server version and isolation level of Placement's database sessions.

    :param path: of placement.conf
    :returns: with the reason in ``unread`` if the database cannot be read
    """
    try:
        return _ask(_url(path))
    except _UnreadError as exc:
        return PlacementDatabase(unread=str(exc))


def _url(path: str) -> URL:
    """Return the URL of the database, with the connection parameters."""
    # Imported late: other commands start faster without oslo.config.
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
        # The text of oslo.config's error may show the line, with the password.
        raise _UnreadError(
            f"{path} cannot be read as Placement reads it ({type(exc).__name__})"
        ) from None
    if not connection:
        raise _UnreadError(f"{path} has no [{_GROUP}]connection")
    try:
        from sqlalchemy.engine import make_url  # noqa: PLC0415
    except ImportError:
        raise _UnreadError("SQLAlchemy is not installed here") from None
    wrong = f"[{_GROUP}]connection in {path} is not a database URL"
    try:
        url = make_url(connection)
        if parameters:
            url = url.update_query_string(parameters, append=True)
    except Exception:  # noqa: BLE001
        # SQLAlchemy's error may show the URL, with the password.
        raise _UnreadError(wrong) from None
    if "@" in (url.host or ""):
        raise _UnreadError(f"{wrong}: write @ in a password as %40")
    return url


def _ask(url: URL) -> PlacementDatabase:
    from sqlalchemy import create_engine, exc, pool  # noqa: PLC0415

    if url.get_backend_name() not in _KNOWN:
        # Connecting to an SQLite file that does not exist would create the file.
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
    """Return the driver's message; only the error's kind if it has a secret."""
    cause = getattr(error, "orig", None) or error
    kind, text = type(cause).__name__, " ".join(str(part) for part in cause.args)
    # The URL's parameters may contain a password, too.
    values = [v for vs in url.normalized_query.values() for v in vs]
    secrets = [v for v in (url.password, *values) if v]
    if not text or any(v in text or quote_plus(v) in text for v in secrets):
        return kind
    return f"{kind}: {text.splitlines()[0]}"
