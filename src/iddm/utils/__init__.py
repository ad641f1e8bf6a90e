"""Small tools without knowledge of imitation: files, settings, optional packages, cores, random keys."""
