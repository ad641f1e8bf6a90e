"""What came out, for people to look at."""
