"""Where we act: one interface over EnvPool and Gymnasium, and the paper's tasks as data."""

from iddm.envs.spec import EnvShape, EnvSpec, make_env, resolve, shape_of
from iddm.envs.tasks import TASKS, Task, find_task
from iddm.envs.vector import Backend, VectorEnv, make_vector
from iddm.spaces import ActionSpace

__all__ = [
    "TASKS",
    "ActionSpace",
    "Backend",
    "EnvShape",
    "EnvSpec",
    "Task",
    "VectorEnv",
    "find_task",
    "make_env",
    "make_vector",
    "resolve",
    "shape_of",
]
