# SPDX-License-Identifier: Apache-2.0
"""Placement's database, asked for what no API shows; runs on a controller.

One session is made as Placement makes its own: from the connection and its
parameters in placement.conf, as the same user.  So it has what that user's sessions
have, wherever it was set: by the server, for the user, or in the connection.
Nothing is written, and no text has the password.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus

from nova_perfvm.facts.placement_database import PlacementDatabase

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Connection

_GROUP: Final = "placement_database"
_TIMEOUT_S: Final = 5
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
        url = _url(path)
        return _ask(url)
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

    backend = url.get_backend_name()
    ask = {"mysql": _mysql, "mariadb": _mysql, "postgresql": _postgresql}.get(backend)
    if ask is None:
        # Opening a file that is not there would make it.
        raise _UnreadError(
            f"{backend} is none of the databases that are known here: MariaDB, MySQL, "
            "PostgreSQL"
        )
    try:
        engine = create_engine(
            url, poolclass=pool.NullPool, connect_args={"connect_timeout": _TIMEOUT_S}
        )
        with engine.connect() as connection:
            return ask(connection)
    except ImportError as error:
        raise _UnreadError(f"the driver {error.name} is not installed here") from None
    except exc.NoSuchModuleError:
        raise _UnreadError(f"there is no driver {url.drivername}") from None
    except Exception as error:  # noqa: BLE001
        raise _UnreadError(
            f"no session with {_address(url)}: {_described(error, url)}; run this "
            "where Placement runs"
        ) from None


def _mysql(connection: Connection) -> PlacementDatabase:
    names = ", ".join(f"'{name}'" for name in _VARIABLES)

    def variables(scope: str) -> dict[str, Any]:
        rows = connection.exec_driver_sql(
            f"SHOW {scope} VARIABLES WHERE Variable_name IN ({names})"
        )
        return {str(name).lower(): value for name, value in rows}

    session, server = variables("SESSION"), variables("GLOBAL")
    product = f"{session['version']} {session.get('version_comment', '')}"
    snapshot = session.get("innodb_snapshot_isolation")
    return PlacementDatabase(
        server="MariaDB" if "mariadb" in product.lower() else "MySQL",
        version=session["version"],
        isolation_level=_level(session),
        server_default=_level(server),
        snapshot_isolation=None if snapshot is None else snapshot == "ON",
    )


def _level(variables: dict[str, Any]) -> str:
    value = variables.get("transaction_isolation") or variables["tx_isolation"]
    return str(value).replace("-", " ").upper()


def _postgresql(connection: Connection) -> PlacementDatabase:
    def show(name: str) -> str:
        return str(connection.exec_driver_sql(f"SHOW {name}").scalar())

    return PlacementDatabase(
        server="PostgreSQL",
        version=show("server_version"),
        isolation_level=show("transaction_isolation").upper(),
    )


def _address(url: URL) -> str:
    port = "" if url.port is None else f":{url.port}"
    return f"{url.drivername} at {url.host or 'its socket'}{port}"


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
