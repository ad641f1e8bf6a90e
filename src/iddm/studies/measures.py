"""What studies measure of a policy besides its return."""

from iddm.studies.core import REDUNDANT, Policy, bundled_for, has_discriminator, measure
from iddm.studies.spec import EPISODES, SIX, RunSpec

DISAGREEMENT, EVERYWHERE = "disagreement", "disagreement, all transitions"
"""On the transitions that agent and expert share, and on all of the agent's."""
TOLD_APART, NULL_ENERGY = "told apart", "null-space energy"


def measured(policy: Policy, spec: RunSpec) -> dict[str, float]:
    """The disagreement with the bundled expert: on the paper's tasks, of runs that have a discriminator and are not quick."""
    joints = spec.task.removeprefix(REDUNDANT)
    if spec.episodes < EPISODES or joints not in SIX or not has_discriminator(spec.method):
        return {}
    found = measure(policy, bundled_for(policy))
    numbers = {
        DISAGREEMENT: found.disagreement.shared.value,
        EVERYWHERE: found.disagreement.everywhere.value,
        TOLD_APART: found.disagreement.told_apart,
        NULL_ENERGY: found.null_energy,
    }
    return {name: round(number, 5) for name, number in numbers.items() if number == number}
