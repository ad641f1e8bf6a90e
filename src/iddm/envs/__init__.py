"""Where we act: one interface over EnvPool and Gymnasium. Import from the modules: a saved policy needs `spaces` alone."""
