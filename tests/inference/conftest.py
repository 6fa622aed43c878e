"""The vocabulary and the model that these tests translate with."""

from drawn_models import model, pieces

__all__ = ["model", "pieces"]
