"""All that an operator or a caller sees is documented, and the documents name nothing else."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

from prometheus_client.metrics import MetricWrapperBase

from delivery.listening.route_table import LISTEN_ROUTES
from delivery.mcp.operations import MCP_ROUTES
from delivery.sessions.pull_operations import PULL_ROUTES
from delivery.sessions.route_table import SESSION_ROUTES
from eventhub.base import limits, metrics
from eventhub.base.config import SETTINGS, Env
from eventhub.base.env import FILE
from eventhub.base.setting import as_variable
from eventhub.http.routes import EMIT_REFUSES, HTTP_ROUTES
from eventhub.web.openapi import all_errors, document
from registrations.bulk.operations import BULK_ROUTES
from registrations.explain.operations import EXPLAIN_ROUTES
from tests.tidy.source import HOME, PACKAGES, for_each, module_name, product, tracked

# Bounds whose reason is not written beside them. The set may only shrink.
WITHOUT_REASON = {
    "APPEND_WAITING_BYTES_MAX",
    "CLIENTS_PER_ZONE_MAX",
    "CONNECTIONS_PER_PROCESS_MAX",
    "CONNECTION_TOKEN_S_DEFAULT",
    "CONNECTION_TOKEN_S_MAX",
    "GRANTS_PER_KEY_MAX",
    "KEYS_PER_CLIENT_MAX",
    "LISTENERS_PER_SOCKET_MAX",
    "MANAGE_BODY_BYTES_MAX",
    "PAGE_ITEMS_DEFAULT",
    "PAGE_ITEMS_MAX",
    "READ_TIMEOUT_S_MAX",
    "SEGMENT_BYTES_DEFAULT",
    "SEGMENT_BYTES_MAX",
    "SEGMENT_EVENTS_DEFAULT",
    "SEGMENT_EVENTS_MAX",
    "SOCKETS_PER_PROCESS_MAX",
    "STOP_TIMEOUT_S_MAX",
    "STREAMS_PER_ZONE_MAX",
    "TOKEN_BYTES_MAX",
}
COMMON_FOLDERS = {"/", "/tmp", "/srv", "/opt", "/root"}  # that a page may name for its own reasons
UNUSED = {"CHANNELS_PER_ZONE_MAX"}  # the table's constraint on bits keeps it


def page(name: str) -> str:
    return (HOME / name).read_text()


def rows(name: str) -> set[str]:
    """Return the code words in the first column of a page's tables, several in a cell too."""
    cells = re.findall(r"^\| (`[^|]*) \|", page(name), re.M)
    return {word for cell in cells for word in re.findall(r"`([^`]+)`", cell)}


def settings_row(name: str) -> str:
    """Return a setting's row in the table of docs/settings.md."""
    setting = SETTINGS[name]
    default = getattr(Env(), name)
    text = f"{default:,}" if type(default) is int else f"`{as_variable(default)}`"
    meaning = re.sub(r"docs/(\w+\.md)(#[\w-]+)?", r"[\1](\1\2)", setting.description)
    return f"| `{setting.variable}` | {meaning} | {setting.default or text} |"


def test_the_table_of_settings_equals_the_class() -> None:
    """Paste the rows that are said to be missing."""
    head = "| Variable | Meaning | Default |\n|---|---|---|\n"
    table = page("docs/settings.md").partition(head)[2]
    shown = table.partition("\n\n")[0].splitlines()
    assert shown == [settings_row(name) for name in SETTINGS]
    assert f"`{FILE}=" in page("docs/settings.md")


def test_setting_is_named_in_a_file_as_in_the_environment() -> None:
    for name, setting in SETTINGS.items():
        assert name == setting.variable.lower().removeprefix("eventhub_")


def test_every_documented_setting_is_read_somewhere() -> None:
    source = "".join(page(str(file)) for file in (*product(), Path("manage.py")))
    assert [
        name for name in rows("docs/settings.md") if name.isupper() and name not in source
    ] == []


def test_only_env_reads_the_hubs_own_variables() -> None:
    own = re.compile(r"environ[^\n]*EVENTHUB_|getenv\(")
    found = [file for file in product() if own.search(page(str(file)))]
    assert [str(file) for file in found if str(file) != "eventhub/base/env.py"] == []


def test_every_metric_is_documented_and_the_other_way_round() -> None:
    found = {value._name for value in vars(metrics).values()
             if isinstance(value, MetricWrapperBase)}  # fmt: skip
    assert found == {name for name in rows("docs/metrics.md") if name.startswith("eventhub_")}


def test_error_codes_are_unique_and_each_has_a_remedy() -> None:
    errors = all_errors()
    assert len({error.code for error in errors}) == len(errors)
    for error in errors:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", error.code), error
        assert 400 <= error.status < 600, error
        docstring = error.__dict__.get("__doc__") or ""
        assert len(docstring.split()) >= 5, f"{error.__name__} says too little"


def test_every_error_of_the_emit_route_is_documented() -> None:
    text = page("docs/api.md").partition("## Errors")[2].partition("## From")[0]
    documented = set(re.findall(r"^\| \d+ \| `(\w+)` \|", text, re.M))
    assert documented == {error.code for error in EMIT_REFUSES} | {"method_not_allowed"}


def test_every_bound_has_a_reason() -> None:
    lines = page("eventhub/base/limits.py").splitlines()
    silent = set()
    for number, line in enumerate(lines):
        name = re.match(r"([A-Z][A-Z0-9_]+) = ", line)
        above = lines[number - 1]
        if name and "#" not in line and (not above.startswith("#") or above.startswith("# ---")):
            silent.add(name[1])
    assert silent == WITHOUT_REASON


def test_every_bound_is_used() -> None:
    names = [name for name in vars(limits) if name.isupper()]
    source = "".join(page(str(file)) for file in product() if file.name != "limits.py")
    assert [name for name in names if f"limits.{name}" not in source] == [*UNUSED]


def test_the_api_document_has_every_route() -> None:
    paths: dict[str, Any] = document()["paths"]
    assert [
        route
        for route in (
            *HTTP_ROUTES,
            *BULK_ROUTES,
            *LISTEN_ROUTES,
            *MCP_ROUTES,
            *PULL_ROUTES,
            *SESSION_ROUTES,
            *EXPLAIN_ROUTES,
        )
        if route.method.lower() not in paths.get(route.path, {})
    ] == []


def test_texts_of_the_api_name_no_requirement() -> None:
    """Its readers do not know the sources."""
    assert re.findall(r"\b(?:SUN|OIF|FOX|RDY|EMC)-\d+", str(document())) == []


def test_architecture_names_every_package_and_no_file_that_is_not_there() -> None:
    text = page("ARCHITECTURE.md")
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_0-9]+)*(?:\.(?:py|sql|md|toml|proto))?)`", text))
    paths = {name for name in named if "/" in name or name in PACKAGES}
    assert [name for name in paths if not (HOME / name).exists()] == []
    packages = {str(file.parent) for file in product() if file.name == "__init__.py"}
    inner = re.compile(r"/(migrations|commands|tests)$")
    missing = {name for name in packages if not inner.search(name)} - paths - {"eventhub"}
    assert missing == set()


def test_architecture_places_every_module_of_the_root() -> None:
    text = page("ARCHITECTURE.md")
    root = [file for file in product() if len(file.parts) == 2 and file.name != "__init__.py"]
    root = [file for file in root if file.parts[0] == "eventhub"]
    assert [str(file) for file in root if f"`{file}`" not in text] == []


def test_import_contract_places_every_module_of_the_root() -> None:
    text = page("pyproject.toml").partition("[tool.importlinter]")[2]
    tops = {".".join(module_name(file).split(".")[:2]) for file in product()}
    named = set(re.findall(r"eventhub\.\w+", text.partition("layers = [")[2].partition("]")[0]))
    assert {top for top in tops if top.startswith("eventhub.")} - named == set()


def test_links_of_the_pages_lead_somewhere() -> None:
    for file in (file for file in tracked() if file.suffix == ".md"):
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page(str(file))):
            if "://" not in target and not target.startswith("/"):
                assert (HOME / file.parent / target).exists(), f"{file}: {target}"


def test_no_empty_line_splits_a_table() -> None:
    """The rows after it showed as text with pipes."""
    for file in (file for file in tracked() if file.suffix == ".md"):
        text = re.sub(r"```.*?```", "", page(str(file)), flags=re.DOTALL)
        assert re.findall(r"\n\n(\|.*)\n(?!\|[ :|-]+\|\n)", text) == [], file


def test_links_to_a_part_of_a_page_name_a_heading_of_it() -> None:
    """The forms are `page.md#a-heading` and `[page](page.md), "A heading"`."""
    for file in (file for file in tracked() if file.suffix == ".md"):
        text = page(str(file))
        for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", text):
            assert anchor in anchors(_page_at(file, target)), f"{file}: {target}#{anchor}"
        for target, heading in re.findall(r"\]\(([^)#\s:]+\.md)\), \"([^\"]+)\"", text):
            assert slug(" ".join(heading.split())) in anchors(_page_at(file, target)), heading


def _page_at(file: Path, target: str) -> str:
    path = (HOME / file.parent / target).resolve() if target else HOME / file
    return path.read_text() if path.suffix == ".md" else ""


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings; a heading that comes again gets `-1`, `-2`, ..."""
    found: Counter[str] = Counter()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        name = slug(heading)
        found[f"{name}-{found[name]}" if found[name] else name] += 1
    return set(found)


def slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@for_each(tracked())
def test_no_file_names_a_path_of_the_machine_it_was_written_on(file: Path) -> None:
    try:
        text = page(str(file))
    except UnicodeDecodeError:
        return
    assert f"{HOME}/" not in text
    assert f"{HOME.parent}/" not in text or str(HOME.parent) in COMMON_FOLDERS
    assert not re.search(r"/(home|Users)/[a-z]\w*/", text)
