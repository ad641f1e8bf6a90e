"""The studies' page, tables, charts and films."""
