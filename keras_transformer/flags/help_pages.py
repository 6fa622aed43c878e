"""The pages of `--help`: sections of options in their order."""

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

Everyday options. `--task={task} --help` shows all {count} of a task, and `--help=Model` shows one
section:
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
    """Return the page that a command line asks for; None if it asks for none. `doc` says what the
    command does. If the command has tasks, its first page shows the `everyday` options.
    """
    requests = [argument for argument in arguments if argument.partition("=")[0] in HELP]
    if not requests:
        return None
    section = requests[-1].partition("=")[2]
    values = _values(expand_flagfiles([flag for flag in arguments if flag not in requests]))
    for name, option in active(read_sections(sections, of_tasks, {}), {}).items():
        if name in values and (name == "task" or option.setting.adds):
            option.check(values[name])
    shown = read_sections(sections, of_tasks, values)
    if section:
        pages = _pages(shown, values)
        titles = [title for title in pages if title.lower() == section.replace("_", " ").lower()]
        if not titles:
            raise ValueError(f"--help={section} is no section. There are: {', '.join(pages)}.")
        return pages[titles[0]]
    doc = doc.strip()
    if "task" in active(sections, {}) and "task" not in values:
        return doc + "\n" + _front(active(shown, values), of_tasks, everyday)
    return "\n\n".join([doc, *_pages(shown, values).values()])


def _values(arguments):
    """Return the value of each flag as it is written: --name=VALUE, or --name VALUE."""
    values = {}
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=False):
        name, equals, value = argument.lstrip("-").partition("=")
        values[name] = value if equals else following
    return values


def _front(options, of_tasks, everyday):
    from keras_transformer.tasks import TASKS

    return FRONT.format(
        tasks="\n".join(f"  --task={task:22}{TASKS[task].aim}" for task in of_tasks),
        task=next(iter(of_tasks)),
        count=len(options),
        everyday="\n".join(_entry(options[name]) for name in everyday),
    )


def _pages(sections, values):
    """Return the text of each section, by its title. An option is shown once."""
    shown: set[str] = set()
    pages: dict[str, list[str]] = {}
    for section in sections:
        for name, option in active([section], values).items():
            if name not in shown:
                shown.add(name)
                pages.setdefault(section.title(), []).append(_entry(option))
    return {title: "\n".join([f"{title}:", *entries]) for title, entries in pages.items()}


def _entry(option: Declared):
    """Return the entry of an option: its flag with the default, its choices, and its help."""
    setting = option.setting
    default = None if setting.is_unset else option.default
    if option.type is bool:
        flag = f"--[no]{option.name}" + {None: "", True: " (yes)", False: " (no)"}[default]
    elif default in (None, ""):
        flag = f"--{option.name}=..."
    else:
        flag = f"--{option.name}={','.join(default) if option.type is list else default}"
    if setting.choices:
        flag += f"  ({', '.join(setting.choices)})"
    lines = [f"  {line}" for line in textwrap.wrap(flag, WIDTH - 2, subsequent_indent="      ")]
    text = setting.help + (" Only on TensorFlow." if setting.on_tensorflow else "")
    lines += textwrap.wrap(text, WIDTH, initial_indent="      ", subsequent_indent="      ")
    return "\n".join(lines)
