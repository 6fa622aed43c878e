"""What `--help` shows: sections of options in their order."""

import textwrap
from collections.abc import Mapping, Sequence

from keras_transformer.flagfiles import expand_flagfiles
from keras_transformer.flags.scopes import read_sections
from pipelines.options import Declared, Sections, active

WIDTH = 100
HELP = ("--help", "--helpfull", "--helpshort", "-help", "-h")
FRONT = """
Tasks, each with options of its own:
{tasks}

Options that everybody needs; `--task={task} --help` shows all {count} of a task, and `--help=Model`
one section:
{everyday}
  --flagfile=FILE
      Read flags from a file: one of the package's recipes, or your own. Later flags win.
"""


def help_of(
    arguments: Sequence[str],
    doc: str,
    sections: Sections,
    of_tasks: Mapping[str, Sections],
    everyday: Sequence[str] = (),
) -> str | None:
    """The page that a command line asks for; None: it asks for none. `doc` says what the command
    does; `everyday` options are what the first page shows of a command that has tasks.
    """
    asked = [one for one in arguments if one.partition("=")[0] in HELP]
    if not asked:
        return None
    section = asked[-1].partition("=")[2]
    rest = [one for one in arguments if one not in asked]
    said = _said(expand_flagfiles(rest))
    for one in active(read_sections(sections, of_tasks, {}), {}).values():
        if one.name in said and (one.name == "task" or one.setting.adds):
            one.check(said[one.name])
    shown = read_sections(sections, of_tasks, said)
    if section:
        pages = _pages(shown, said)
        alike = [one for one in pages if one.lower() == section.replace("_", " ").lower()]
        if not alike:
            raise ValueError(f"--help={section} is no section. There are: {', '.join(pages)}.")
        return pages[alike[0]]
    doc = doc.strip()
    if "task" in active(sections, {}) and "task" not in said:
        return doc + "\n" + _front(active(shown, said), of_tasks, everyday)
    return "\n\n".join([doc, *_pages(shown, said).values()])


def _said(arguments):
    """The value of each flag as it is written: --name=VALUE, or --name VALUE."""
    said = {}
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=False):
        name, equals, value = argument.lstrip("-").partition("=")
        said[name] = value if equals else following
    return said


def _front(options, of_tasks, everyday):
    from keras_transformer.tasks import TASKS

    return FRONT.format(
        tasks="\n".join(f"  --task={task:22}{TASKS[task].aim}" for task in of_tasks),
        task=next(iter(of_tasks)),
        count=len(options),
        everyday="\n".join(_line(options[name]) for name in everyday),
    )


def _pages(sections, said):
    """The text of each section, by its title. An option is shown once."""
    shown: set[str] = set()
    pages: dict[str, list[str]] = {}
    for section in sections:
        for name, one in active([section], said).items():
            if name not in shown:
                shown.add(name)
                pages.setdefault(section.title(), []).append(_line(one))
    return {title: "\n".join([f"{title}:", *lines]) for title, lines in pages.items()}


def _line(one: Declared):
    """An option: how it is written with its default, its choices, what it does."""
    default = None if one.setting.is_unset else one.default
    if one.type is bool:
        written = f"--[no]{one.name}" + {None: "", True: " (yes)", False: " (no)"}[default]
    elif default in (None, ""):
        written = f"--{one.name}=..."
    else:
        written = f"--{one.name}={','.join(default) if one.type is list else default}"
    if one.setting.choices:
        written += f"  ({', '.join(one.setting.choices)})"
    lines = [f"  {line}" for line in textwrap.wrap(written, WIDTH - 2, subsequent_indent="      ")]
    says = one.setting.help + (" On TensorFlow alone." if one.setting.on_tensorflow else "")
    lines += textwrap.wrap(says, WIDTH, initial_indent="      ", subsequent_indent="      ")
    return "\n".join(lines)
