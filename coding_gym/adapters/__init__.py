"""Bridges to trainers, one per file, each imported only on use."""
