"""What turns projected queries, keys and values into heads: the scaled dot-product attention of
section 3.2.1 (Vaswani et al. 2017), and what may stand in its place.
"""
