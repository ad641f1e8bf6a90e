"""The inverse dynamics disagreement, estimated from rows where it cannot be computed: in continuous control."""
