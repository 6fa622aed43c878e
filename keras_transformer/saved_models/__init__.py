"""SavedModels of any task: to write, check, read and run them; and conversion to CTranslate2."""
