"""Small tools without knowledge of imitation: files, locks, settings, optional packages, cores, compiled code."""
