"""Playing episodes and keeping what happened."""
