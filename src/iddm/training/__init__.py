"""From a config to a trained policy: set-up, the loop, and the run's directory."""
