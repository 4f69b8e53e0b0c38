"""What the documents say of the commands is so, and every command and option is in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from foretime_sidecar.cli.application import COMMANDS as MODULES
from foretime_sidecar.cli.application import app

REPOSITORY = Path(__file__).resolve().parent.parent
PAGE = REPOSITORY / "docs" / "commands.md"


def whole_command() -> Any:
    """Give `foretime` with all its sub-commands imported."""
    command: Any = typer.main.get_command(app)
    command.load_all()
    return command


def children(command: Any) -> dict[str, Any]:
    """Give a command's sub-commands by name, those of other distributions too."""
    context = typer.Context(command)
    return {name: command.get_command(context, name) for name in command.list_commands(context)}


def commands() -> dict[str, Any]:
    """Give every command by its full name, ``foretime replay``, and those that hold others."""

    def below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        yield name, command
        for child_name, child in children(command).items() if is_group(command) else ():
            if not child.hidden:
                yield from below(f"{name} {child_name}", child)

    return dict(below("foretime", whole_command()))


def is_group(command: Any) -> bool:
    return hasattr(command, "commands")


ALL_COMMANDS = commands()
COMMANDS = {name: command for name, command in ALL_COMMANDS.items() if not is_group(command)}
"""Those that do something."""


def plain(text: str) -> str:
    """Turn help's own markup into Markdown, on one line."""
    return re.sub(r"\[/?bold\]", "`", " ".join(text.split()))


def sections() -> dict[str, str]:
    """Give the reference page's text for each command."""
    parts = re.split(r"^## (.+)$", PAGE.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_reference_page_has_every_command_and_no_other() -> None:
    assert list(sections()) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_reference_page_has_every_option_and_no_other(name: str) -> None:
    text = sections()[name]
    rows = dict(re.findall(r"^\| (`.*?`) \| (.*) \|$", text, flags=re.MULTILINE))
    expected, taken = {}, {}
    for parameter in COMMANDS[name].params:
        if parameter.name != "help":
            words = [*parameter.opts, *parameter.secondary_opts]
            if parameter.param_type_name == "argument":
                words = [parameter.metavar or parameter.name.upper()]
            option = ", ".join(f"`{word}`" for word in words)
            expected[option] = plain(parameter.help)
            if parameter.param_type_name == "option":
                taken[option] = [parameter.metavar] if parameter.metavar else []
    assert list(rows) == list(expected)
    for option, meaning in expected.items():
        row = rows[option].replace("\\|", "|")
        assert row.startswith(meaning), f"{name} {option}"
        # Whole numbers, paths and the like need no word; what has one has it here, too.
        if option in taken:
            assert re.findall(r" Takes `(.*?)`\.", row) == taken[option], f"{name} {option}"
    for paragraph in COMMANDS[name].help.split("\n\n"):
        assert plain(paragraph) in " ".join(text.split())


@pytest.mark.parametrize("name", ALL_COMMANDS)
def test_every_command_has_an_example_and_every_option_a_help(name: str) -> None:
    command = ALL_COMMANDS[name]
    example = rf"Example: (\[bold\])?{name}( |\[/bold\])"
    assert re.search(example, command.help or ""), f"{name}: no example in its help"
    for parameter in command.params:
        if parameter.name != "help":
            assert parameter.help, f"{name}: {parameter.opts} has no help"


@pytest.mark.parametrize("name", MODULES)
def test_the_line_of_a_command_in_help_is_its_own_first_line(name: str) -> None:
    own: str = whole_command().commands[name].help
    assert own.split("\n")[0] == MODULES[name].line


def command_lines() -> list[tuple[str, str]]:
    """Find every line of a document that calls foretime, with where it stands."""
    found = []
    examples = [
        (name, text)
        for name, command in COMMANDS.items()
        for text in re.findall(r"\[bold\](.*?)\[/bold\]", command.help or "")
    ]
    found += examples
    for path in (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            text = line.strip().removeprefix("$ ").removeprefix(".venv/bin/")
            if re.match(r"foretime [a-z-]", text):
                found.append((f"{path.name}:{number}", text))
            for inline in re.findall(r"`(foretime [a-z-][^`]*)`", line):
                found.append((f"{path.name}:{number}", inline))
    return found


@pytest.mark.parametrize(("where", "line"), command_lines())
def test_documented_command_lines_exist(where: str, line: str) -> None:
    command = whole_command()
    words = shlex.split(line.split(" | ")[0].split(" > ")[0], comments=True)[1:]
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        below = children(command)
        assert words[0] in below, f"{where}: no command {words[0]!r}: {line}"
        command = below[words.pop(0)]
    names = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
    for word in words:
        if word.startswith("-") and not re.fullmatch(r"-[\d.]+", word):
            option = word.split("=")[0]
            known = names | {"-h", "--help"}
            assert option in known, f"{where}: no option {option!r}: {line}"


def test_the_readme_leads_to_every_page() -> None:
    linked = set(re.findall(r"\]\(([^)#]+)", (REPOSITORY / "README.md").read_text()))
    pages = {str(p.relative_to(REPOSITORY)) for p in (REPOSITORY / "docs").rglob("*.md")}
    assert pages <= linked


LINKS = [
    (str(page.relative_to(REPOSITORY)), link)
    for page in (
        *REPOSITORY.glob("*.md"),
        *(REPOSITORY / "docs").rglob("*.md"),
        *(REPOSITORY / "plugin").rglob("*.md"),
    )
    for link in re.findall(
        r"\]\(([^)#\s]+)", re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    )
    if "://" not in link
]


@pytest.mark.parametrize(("page", "link"), LINKS)
def test_links_lead_somewhere(page: str, link: str) -> None:
    assert (REPOSITORY / page).parent.joinpath(link).exists()
