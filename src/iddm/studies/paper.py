"""The numbers that the paper reports: mean return and its deviation."""

Published = tuple[float, float]
"""(mean, deviation)"""

_TASKS = ("CartPole", "InvertedPendulum", "InvertedDoublePendulum", "Hopper", "HalfCheetah", "Ant")
_BY_METHOD: dict[str, tuple[Published | None, ...]] = {
    "deepmimic": (None, (731.0, 19.0), (454.4, 154.0), (2292.6, 1068.9), (202.6, 4.4), (-985.3, 13.6)),
    "bco": ((200.0, 0.0), (24.9, 0.8), (80.3, 13.1), (1266.2, 1062.8), (4557.2, 90.0), (562.5, 384.1)),
    "gaifo": ((197.5, 7.3), (980.2, 3.0), (4240.6, 4525.6), (1021.4, 0.6), (3955.1, 22.1), (-1415.0, 161.1)),
    "gaifo-s": ((200.0, 0.0), (952.1, 23.0), (1089.2, 51.4), (1022.5, 0.4), (2896.5, 53.8), (-5062.3, 56.9)),
    "iddm": ((200.0, 0.0), (1000.0, 0.0), (9359.7, 0.2), (3300.9, 52.1), (5699.3, 51.8), (2800.4, 14.0)),
    "gail": ((200.0, 0.0), (1000.0, 0.0), (9174.8, 1292.5), (3249.9, 34.0), (6279.0, 56.5), (5508.8, 791.5)),
    "expert": ((200.0, 0.0), (1000.0, 0.0), (9318.8, 8.5), (3645.7, 181.8), (5988.7, 61.8), (5746.8, 117.5)),
}

TABLE_2: dict[str, dict[str, Published]] = {
    method: {task: number for task, number in zip(_TASKS, numbers, strict=True) if number is not None}
    for method, numbers in _BY_METHOD.items()
}
"""By method and task (IDDM, Table 2). The paper has neither bc nor controls, and no DeepMimic on CartPole."""

WEIGHTS: dict[tuple[float, float], Published] = {
    (0.0, 0.01): (4882.8, 40.1),
    (0.0005, 0.01): (5526.2, 95.6),
    (0.001, 0.01): (5343.2, 88.5),
    (0.01, 0.01): (5404.8, 103.7),
    (0.001, 0.0): (4658.0, 90.2),
    (0.001, 0.001): (5189.7, 77.2),
    (0.001, 0.1): (5540.5, 100.3),
}
"""By (λ_p, λ_s), on HalfCheetah (IDDM, Tables 6 and 7)."""
