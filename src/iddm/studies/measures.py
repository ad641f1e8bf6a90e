"""What studies measure of a policy besides its return."""

from iddm.studies.core import REDUNDANT, Policy, bundled_for, has_discriminator, measure
from iddm.studies.spec import EPISODES, SIX, RunSpec, study_steps

DISAGREEMENT, EVERYWHERE = "disagreement", "disagreement, all transitions"
"""On the transitions that agent and expert share, and on all of the agent's."""
TOLD_APART, NULL_ENERGY = "told apart", "null-space energy"


def measured(policy: Policy, spec: RunSpec) -> dict[str, float]:
    """The disagreement with the bundled expert, of runs with a discriminator: whole ones on the paper's tasks, and all that have
    redundant motors (but for quick ones). It takes as long as a light run.
    """
    joints = spec.task.removeprefix(REDUNDANT)
    whole = spec.task != joints or spec.steps >= study_steps(joints)
    if spec.episodes < EPISODES or joints not in SIX or not whole or not has_discriminator(spec.method):
        return {}
    found = measure(policy, bundled_for(policy))
    numbers = {
        DISAGREEMENT: found.disagreement.shared.value,
        EVERYWHERE: found.disagreement.everywhere.value,
        TOLD_APART: found.disagreement.told_apart,
        NULL_ENERGY: found.null_energy,
    }
    return {name: round(number, 5) for name, number in numbers.items() if number == number}
