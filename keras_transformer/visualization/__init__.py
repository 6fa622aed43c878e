"""Pictures of what models do. Each is one file: its options, what it measures, how it is drawn."""
