"""From a table of joint angles, in degrees, at 60 Hz, with trials called T01, T02, …, to a policy.

python examples/from_a_table.py capture.csv          # writes the table, as a motion capture would export it
iddm inspect capture.csv --env HalfCheetah-v5        # says what to add: --columns, then --stride and --scale
iddm train HalfCheetah-v5 --demos capture.csv --out runs/capture \
    --columns rootz,rooty,bthigh,bshin,bfoot,fthigh,fshin,ffoot --scale 1:8=deg --stride 1/3
iddm eval runs/capture
"""

import csv
import sys

import numpy as np

import iddm

ANGLES = ("rooty", "bthigh", "bshin", "bfoot", "fthigh", "fshin", "ffoot")
FRAMES_PER_STEP = 3  # HalfCheetah takes 20 steps per second


def record(path: str, trials: int = 4) -> None:
    """What a camera would see of the bundled expert: the height and angles between the steps too, and no velocities."""
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["trial", "time", "rootz", *ANGLES])
        for number, rows in enumerate(iddm.bundled_demos("HalfCheetah").observations[:trials], 1):
            steps = np.arange(len(rows))
            frames = np.arange(FRAMES_PER_STEP * (len(rows) - 1) + 1) / FRAMES_PER_STEP
            height, *angles = (np.interp(frames, steps, column) for column in rows.T[: 1 + len(ANGLES)])
            for values in zip(frames / 20, height, *np.degrees(angles), strict=True):
                table.writerow([f"T{number:02}", *(f"{value:.4f}" for value in values)])


if __name__ == "__main__":
    record(sys.argv[1])
