"""What a request may ask of a SavedModel. A server clamps what lies beyond, Python refuses it."""

# An export with a wider beam than this allows its own.
MOST_HYPOTHESES = 32
STEEPEST_PENALTY = 10.0
# Tokens of a translation.
LONGEST = 2048
