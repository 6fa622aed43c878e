"""Classes of pictures, by a Vision Transformer."""
