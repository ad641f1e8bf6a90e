"""`iddm expert`."""

from iddm.cli.train import learn, train_flags


def expert_command(args: list[str]) -> int:
    """Train an expert with PPO on the environment's own reward."""
    return learn(*train_flags(args, expert=True))
