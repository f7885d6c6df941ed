"""Pipeline files, read strictly."""
