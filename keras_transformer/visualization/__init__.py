"""Pictures of what models do. Each module has a picture's options, measurement and drawing."""
