"""Tables of results, in Markdown."""


def print_table(columns, rows):
    """Print rows of strings under the names of their columns, each as soon as it comes."""
    print("\n| " + " | ".join(columns) + " |\n|" + "---|" * len(columns), flush=True)
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
