"""What is learned: one task a file."""
