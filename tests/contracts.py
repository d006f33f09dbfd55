"""The import contract of the four kinds of module, for import-linter. Every module says in its
docstring which kind it is, so that none escapes: `Plain module.`, `SQL module.`, `Django module.`
or `Spark module.` Frameworks are Django (with Channels and DRF) and Spark; Celery does not count.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

HOME = Path(__file__).resolve().parents[1]
SOURCES = {"eventhub_client": HOME / "clients" / "python"}  # by package, where it is not HOME
KINDS = ("Plain", "SQL", "Django", "Spark")
DJANGO = {"channels", "django", "django_filters", "drf_spectacular", "rest_framework"}
DRIVERS = {"adbc_driver_manager", "adbc_driver_postgresql", "psycopg", "psycopg_pool", "redis"}
SPARK = {"py4j", "pyspark"}


def source_of(module: str) -> Path:
    """Return the file of a module of the product."""
    path = SOURCES.get(module.split(".")[0], HOME) / module.replace(".", "/")
    return path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"


def kind_of(text: str) -> str | None:
    """Return the kind that a module's text declares, None if it declares none or several."""
    docstring = ast.get_docstring(ast.parse(text)) or ""
    declared = [kind for kind in KINDS if f"{kind} module." in " ".join(docstring.split())]
    return declared[0] if len(declared) == 1 else None


class KindsContract(Contract):
    """Check that each module imports what its kind may import.

    A Plain module imports no driver and reaches no framework. A SQL module reaches a driver but no
    framework. A Spark module reaches Spark, and neither Django nor a driver. Only a Django module
    reaches Django. Migrations and generated code declare nothing and are Django's and plain.
    """

    ignore_imports = fields.SetField(subfield=fields.StringField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        for line in self.ignore_imports or ():
            importer, _, imported = str(line).partition(" -> ")
            graph.remove_import(importer=importer, imported=imported)
        roots = set(self.session_options["root_packages"])
        own = sorted(module for module in graph.modules if module.split(".")[0] in roots)
        broken = [fault for module in own for fault in _faults(graph, module)]
        return ContractCheck(kept=not broken, metadata={"faults": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for fault in check.metadata["faults"]:
            output.print_error(fault)


def _faults(graph: ImportGraph, module: str) -> Iterator[str]:
    text = source_of(module).read_text()
    if not text.strip() or ".migrations." in module or module.endswith("_pb2"):
        return
    kind = kind_of(text)
    reached = {name.split(".")[0] for name in graph.find_upstream_modules(module)}
    direct = {name.split(".")[0] for name in graph.find_modules_directly_imported_by(module)}
    if kind is None:
        yield f"{module}: its docstring names no kind or several; one of {', '.join(KINDS)}"
    elif (kind == "Django") != bool(reached & DJANGO):
        yield f"{module}: a {kind} module {'reaches' if reached & DJANGO else 'without'} Django"
    elif kind == "Plain" and direct & DRIVERS:
        yield f"{module}: a Plain module imports {', '.join(sorted(direct & DRIVERS))}"
    elif kind == "SQL" and not reached & DRIVERS:
        yield f"{module}: a SQL module reaches no driver"
    elif kind != "Django" and (kind == "Spark") != bool(reached & SPARK):
        yield f"{module}: a {kind} module {'reaches' if reached & SPARK else 'without'} Spark"
    elif kind == "Spark" and reached & DRIVERS:
        yield f"{module}: a Spark module reaches {', '.join(sorted(reached & DRIVERS))}"
