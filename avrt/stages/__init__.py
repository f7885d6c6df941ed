"""Reference perception, fusion and planning stages."""
