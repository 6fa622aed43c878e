"""SavedModels of any task: written, checked, read and run; and the same weights for CTranslate2."""
