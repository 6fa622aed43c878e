"""Tables of results, in Markdown."""


def print_table(columns, rows):
    """Print rows of strings under the names of their columns."""
    print("\n| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
