"""What training leaves and everybody reads: the folder of a run, the versions of a SavedModel, starting points."""
