"""Results as Markdown."""


def print_table(columns, rows):
    """Rows of strings under names."""
    print("\n| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(row) + " |")
