"""The vocabulary and the model that these tests look at."""

from drawn_models import model, pieces

__all__ = ["model", "pieces"]
