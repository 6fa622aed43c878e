"""A server of SavedModels with TF Serving's REST interface. It knows strings, tensors and
signatures, not where they come from.
"""
