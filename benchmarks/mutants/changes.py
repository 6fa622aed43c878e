"""Small changes to a source, each of which a test should notice (for `mutation`).

Python: numbers one up, one down or zero; comparisons, arithmetic, `and` and `or` turned round;
conditions negated; `not` and signs removed; True and False exchanged; keys and names in strings
changed; statements removed; None returned; arguments left out; slices from the other end.
Docstrings, annotations, and the words of errors and prints stay. Flag files: values changed, lines
removed.
"""

import ast
import dataclasses
import itertools
import pathlib
import re

EXCHANGED = [
    *[("<", "<="), (">", ">="), ("==", "!="), ("is", "is not"), ("in", "not in"), ("and", "or")],
    *[("+", "-"), ("*", "/"), ("&", "|"), ("<<", ">>")],
]
TURNED = {
    **dict(EXCHANGED),
    **{second: first for first, second in EXCHANGED},
    **dict.fromkeys(["//", "%", "**", "@"], "*"),
}
NAME = re.compile(r"[\w./:-]+")
NUMBER = re.compile(r"[-+.\de]+")
OPERATOR = re.compile(r"is\s+not|not\s+in|\*\*|//|<<|>>|[<>=!]=|[-+*/%@&|<>]|is|in|and|or")
SAYING = ("print", "report", "warn", "warning", "info")


def _lines(statement):
    return range(statement.lineno, statement.end_lineno + 1)


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A source in which one stretch of text is replaced."""

    path: pathlib.Path
    line: int
    start: int
    end: int
    new: str

    def source(self):
        text = self.path.read_text(encoding="utf-8")
        return text[: self.start] + self.new + text[self.end :]

    def lines(self):
        """Lines of the statement around it; none if it is executed when the module is imported."""
        if self.path.suffix != ".py":
            return range(0)
        statements = ast.parse(self.path.read_text(encoding="utf-8")).body
        function = None
        while around := [node for node in statements if self.line in _lines(node)]:
            [statement] = around[-1:]
            names = ("body", "orelse", "handlers", "finalbody")
            statements = [*itertools.chain(*(getattr(statement, name, []) for name in names))]
            if self.line < min((node.lineno for node in statements), default=self.line + 1):
                break
            function = function or isinstance(statement, ast.FunctionDef)
        return _lines(statement) if function else range(0)

    def __str__(self):
        text = self.path.read_text(encoding="utf-8")
        old = " ".join(text[self.start : self.end].split())
        where = " ".join(text.splitlines()[self.line - 1].split())
        return f"{self.path}:{self.line}: `{old}` -> `{self.new}` in `{where}`"


def sites(path):
    """The mutants of a file, those of one place together: a list of lists. Some do not compile."""
    path = pathlib.Path(path)
    if path.suffix == ".flags":
        return list(_of_flags(path))
    python = _Python(path)
    python.visit(python.tree)
    return python.sites


def compiles(mutant):
    try:
        return mutant.path.suffix != ".py" or bool(ast.parse(mutant.source()))
    except SyntaxError:
        return False


def _of_flags(path):
    text = path.read_text(encoding="utf-8")
    for match in re.finditer(r"^--(\w+)=(.*)\n", text, re.MULTILINE):
        line = text.count("\n", 0, match.start()) + 1
        value = match[2]
        is_number = NUMBER.fullmatch(value)
        changed = [f"{float(value) * factor:g}" for factor in (0.5, 2)] if is_number else ["x"]
        yield [
            Mutant(path, line, match.start(), match.end(), ""),
            *(Mutant(path, line, *match.span(2), new) for new in changed if new != value),
        ]


class _Python(ast.NodeVisitor):
    """Collects the sites of a source."""

    def __init__(self, path):
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        lines = self.text.splitlines(keepends=True)
        self.lines = [line.encode() for line in lines]
        self.starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
        self.sites = []

    def position(self, line, column):
        """Columns of syntax trees count bytes."""
        return self.starts[line - 1] + len(self.lines[line - 1][:column].decode())

    def span(self, node):
        return (
            self.position(node.lineno, node.col_offset),
            self.position(node.end_lineno, node.end_col_offset),
        )

    def segment(self, node):
        start, end = self.span(node)
        return self.text[start:end]

    def add(self, node, *news):
        self.sites.append([Mutant(self.path, node.lineno, *self.span(node), new) for new in news])

    def turn(self, left, right):
        """The operator between two operands."""
        start, end = self.span(left)[1], self.span(right)[0]
        match = OPERATOR.search(self.text, start, end)
        if match and (new := TURNED.get(" ".join(match[0].split()))):
            line = self.text.count("\n", 0, match.start()) + 1
            self.sites.append([Mutant(self.path, line, *match.span(), new)])

    def body(self, statements):
        for statement in statements:
            if not _is_words(statement):
                self.visit(statement)

    def visit_FunctionDef(self, node):
        defaults = filter(None, (*node.args.defaults, *node.args.kw_defaults))
        for part in (*node.decorator_list, *defaults):
            self.visit(part)
        self.body(node.body)

    def visit_ClassDef(self, node):
        for part in (*node.decorator_list, *node.keywords):
            self.visit(part)
        self.body(node.body)

    def visit_Module(self, node):
        self.body(
            statement
            for statement in node.body
            if not (isinstance(statement, ast.If) and "__main__" in self.segment(statement.test))
        )

    def visit_AnnAssign(self, node):
        if node.value:
            self.visit(node.value)

    def visit_JoinedStr(self, node):
        pass

    def visit_Raise(self, node):
        self.add(node, "pass")

    def visit_Constant(self, node):
        value = node.value
        if isinstance(value, bool):
            self.add(node, str(not value))
        elif isinstance(value, int | float):
            text = self.segment(node)
            zero = ["0"] if value not in (0, 1) else []
            self.add(node, f"({text} + 1)", f"({text} - 1)", *zero)
        elif isinstance(value, str) and NAME.fullmatch(value):
            self.add(node, repr(f"x{value}"))

    def visit_Compare(self, node):
        operands = [node.left, *node.comparators]
        for left, right in itertools.pairwise(operands):
            self.turn(left, right)
        self.generic_visit(node)

    def visit_BinOp(self, node):
        self.turn(node.left, node.right)
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        for left, right in itertools.pairwise(node.values):
            self.turn(left, right)
        self.generic_visit(node)

    def visit_UnaryOp(self, node):
        self.add(node, f"({self.segment(node.operand)})")
        self.generic_visit(node)

    def condition(self, node):
        self.add(node.test, f"(not ({self.segment(node.test)}))")
        self.generic_visit(node)

    visit_If = visit_IfExp = condition

    def visit_Return(self, node):
        if node.value and self.segment(node) != "return None":
            self.add(node, "return None")
            self.visit(node.value)

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Call):
            self.add(node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node):
        self.add(node, "pass")
        self.visit(node.value)

    def visit_Assign(self, node):
        if self.segment(node).startswith("__all__"):
            return
        # A name that is not assigned anywhere else would be missed by any test.
        names = {name.id for name in ast.walk(node.value) if isinstance(name, ast.Name)}
        if any(getattr(target, "id", None) in {*names, None} for target in node.targets):
            self.add(node, "pass")
        self.generic_visit(node)

    def visit_Call(self, node):
        if getattr(node.func, "id", getattr(node.func, "attr", "")) in SAYING:
            return
        for argument in (*node.args[-1:], *node.keywords):
            start, end = self.span(argument)
            comma = re.compile(r"\s*,").match(self.text, end)
            line = argument.value.lineno if hasattr(argument, "arg") else argument.lineno
            self.sites.append([Mutant(self.path, line, start, comma.end() if comma else end, "")])
        self.generic_visit(node)

    def visit_Slice(self, node):
        if bool(node.lower) != bool(node.upper) and not node.step:
            bound = self.segment(node.lower or node.upper)
            self.add(node, f":{bound}" if node.lower else f"{bound}:")
        self.generic_visit(node)


def _is_words(statement):
    """A docstring."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
