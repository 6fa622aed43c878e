"""Pictures of what models do: numbers in one file, drawing in another."""
