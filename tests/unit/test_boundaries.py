# SPDX-License-Identifier: Apache-2.0

import ast
import collections
import graphlib
import os
import pathlib
import re
import subprocess
import sys

import testtools

import nova_perfvm

PACKAGE = pathlib.Path(nova_perfvm.__file__).parent
TESTS = pathlib.Path(__file__).parents[1]
# The rooms of the house: each may import those before it.
ROOMS = (
    "constants",
    "printable",
    "exceptions",
    "cpuset",
    "solver",
    "pages",
    "documents",
    "microversions",
    "findings",
    "conf",
    "policy",
    "facts",
    "placement",
    "rules",
    "generate",
    "known_bugs",
    "diagnose",
    "changes",
    "measure",
    "sizing",
    "cloud",
    "scheduler",
    "api",
    "watcher",
    "osc",
    "tempest_plugin",
)
# They touch a cloud, each on a side of its own; only the command line may use
# what another has.
EDGES = ("cloud", "scheduler", "api", "osc")
PURE = ROOMS[: ROOMS.index("cloud")]
STDLIB_ONLY = ("policy", "facts", "placement", "rules", "diagnose.audit", "changes")
HEAVY = ("nova", "eventlet", "openstack", "osc_lib")


def room_of(name):
    """Return the room of a dotted name, None for another package's."""
    parts = name.split(".")
    return parts[1] if parts[0] == "nova_perfvm" and len(parts) > 1 else None


def imported(path):
    """Yield the dotted names that a file imports, for types only, too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def modules_imported(root):
    """Return {module: modules of the package that it imports}, for types only, too."""
    paths = {
        ".".join(path.relative_to(root.parent).with_suffix("").parts): path
        for path in root.rglob("*.py")
    }
    paths = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    return {
        module: {
            # A name that a module has, or a module of a package.
            name if name in paths else name.rpartition(".")[0]
            for name in imported(path)
        }
        & paths.keys() - {module}
        for module, path in paths.items()
    }


def trespasses(root):
    """Yield the imports that the order of the rooms forbids."""
    for path in sorted(root.rglob("*.py")):
        here = path.relative_to(root).with_suffix("").parts[0]
        for name in imported(path):
            room = room_of(name)
            if here == "__init__" or room in {None, here} or room not in ROOMS:
                continue
            edge = here in EDGES and here != "osc" and room in EDGES
            if edge or ROOMS.index(room) >= ROOMS.index(here):
                yield f"{path.relative_to(root)} imports {name}"


def loaded_by(modules, watched):
    """Return which of the watched packages a fresh process has after imports."""
    code = (
        f"import importlib, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        f"print(*[name for name in {watched!r} if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    return result.stdout.split()


def python_files(root):
    """Yield the files of Python, by suffix or by their first line."""
    for path in sorted(root.rglob("*")):
        if path.suffix == ".py" or (
            path.is_file() and re.match(rb"#!.*python", path.read_bytes()[:80])
        ):
            yield path


def own(names):
    """Return the dotted names that are the project's."""
    return sorted(n for n in names if n.startswith(("nova_perfvm.", "tests.")))


def unresolved(names):
    """Return those that name nothing, for a fresh process."""
    code = (
        # Before anybody imports eventlet, which Nova forbids then.
        "import pkgutil, sys, tests.cloud\n"
        # Modules may log when they are imported.
        "mark = 'unresolved:'\n"
        "for name in sys.stdin.read().split():\n"
        "    try: pkgutil.resolve_name(name)\n"
        "    except (ImportError, AttributeError): print(mark, name)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        cwd=TESTS.parent,
        env=os.environ | {"OS_NOVA_DISABLE_EVENTLET_PATCHING": "1"},
        input="\n".join(names),
        text=True,
    )
    if result.returncode:
        raise AssertionError(result.stderr[-2000:])
    lines = [line.split() for line in result.stdout.splitlines()]
    return [line[1] for line in lines if line[:1] == ["unresolved:"]]


class ImportsTest(testtools.TestCase):
    def test_every_room_has_its_place(self):
        names = {p.stem for p in PACKAGE.iterdir() if p.suffix in {"", ".py"}}
        self.assertEqual(set(ROOMS), names - {"__init__", "__pycache__"})

    def test_rooms_import_those_before_them(self):
        self.assertEqual([], list(trespasses(PACKAGE)))

    def test_no_circle_of_modules(self):
        graph = modules_imported(PACKAGE)
        self.assertIn("nova_perfvm.facts", graph["nova_perfvm.rules.rule"])
        # Raises CycleError, which names the modules of a circle.
        graphlib.TopologicalSorter(graph).prepare()

    def test_watcher_is_for_its_plugins_alone(self):
        importing = {
            path.parent.relative_to(PACKAGE).as_posix()
            for path in PACKAGE.rglob("*.py")
            for name in imported(path)
            if name.split(".")[0] == "watcher" or room_of(name) == "watcher"
        }
        self.assertEqual({"watcher"}, importing)

    def test_pure_rooms_load_no_openstack(self):
        modules = [
            ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
            for room in PURE
            for path in (PACKAGE / room).rglob("*.py")
            if path.stem != "__init__"
        ]
        self.assertGreater(len(modules), 50)
        self.assertEqual([], loaded_by(modules, HEAVY))

    def test_the_client_plugin_loads_no_openstack(self):
        self.assertEqual(
            [], loaded_by(["nova_perfvm.osc.plugin"], ("nova", "eventlet", "openstack"))
        )

    def test_facts_and_rules_load_nothing_but_the_standard_library(self):
        modules = [f"nova_perfvm.{name}" for name in STDLIB_ONLY]
        self.assertEqual([], loaded_by(modules, ("yaml", "oslo_config")))

    def test_options_load_no_nova(self):
        self.assertEqual([], loaded_by(["nova_perfvm.conf"], ("nova", "openstack")))

    def test_scheduler_loads_no_client(self):
        self.assertEqual(
            [], loaded_by(["nova_perfvm.scheduler.filters"], ("osc_lib", "cliff"))
        )

    def test_scheduler_runs_where_nova_forbids_eventlet(self):
        """As nova-scheduler starts: from Nova 34 on, importing eventlet raises.

        Before, Nova imports it itself.
        """
        code = (
            "import sys\n"
            "from nova import monkey_patch\n"
            "getattr(monkey_patch, 'patch', bool)()\n"
            "import nova.scheduler.filters, nova.scheduler.utils\n"
            "before = 'eventlet' in sys.modules\n"
            "import nova_perfvm.scheduler.filters\n"
            "sys.exit(('eventlet' in sys.modules) != before)"
        )
        environment = os.environ | {"OS_NOVA_DISABLE_EVENTLET_PATCHING": "1"}
        result = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            env=environment,
            check=False,
            text=True,
        )
        self.assertEqual(0, result.returncode, result.stderr[-500:])

    def test_tests_of_all_kinds_import_what_there_is(self):
        """Those that need a machine of their own run seldom."""
        names = {name for path in python_files(TESTS) for name in imported(path)}
        self.assertGreater(len(own(names)), 500)
        self.assertEqual([], unresolved(own(names)))


class NamesTest(testtools.TestCase):
    def test_no_module_for_what_has_no_name(self):
        names = {path.stem for path in PACKAGE.rglob("*")}
        self.assertEqual(set(), names & {"utils", "helpers", "manager", "misc"})

    def test_no_two_types_of_one_name(self):
        homes = collections.defaultdict(list)
        for path in sorted(PACKAGE.rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes[node.name].append(str(path.relative_to(PACKAGE)))
        self.assertGreater(len(homes), 200)
        self.assertEqual({}, {name: at for name, at in homes.items() if at[1:]})

    def test_no_class_of_tests_is_loaded_twice(self):
        """A module that imports one of its suite runs it again, and it counts once."""
        trees = {
            tuple(path.relative_to(TESTS.parent).with_suffix("").parts): ast.parse(
                path.read_text()
            )
            for path in TESTS.rglob("*.py")
        }
        having = {
            f"{'.'.join(module)}.{node.name}"
            for module, tree in trees.items()
            for node in tree.body
            if isinstance(node, ast.ClassDef)
            and module[-1].startswith("test_")
            and not node.name.endswith("Mixin")
            and any(getattr(m, "name", "").startswith("test_") for m in node.body)
        }
        self.assertGreater(len(having), 200)
        imported = {
            f"{node.module}.{alias.name}"
            for module, tree in trees.items()
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            and (node.module or "").startswith(".".join(module[:2]))
            for alias in node.names
        }
        self.assertEqual(set(), having & imported)
