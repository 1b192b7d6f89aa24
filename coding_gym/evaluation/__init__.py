"""Statistics, reports and comparisons of finished runs."""
