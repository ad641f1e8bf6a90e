"""Measures Stable-Baselines3's PPO: the same work without a discriminator, on the true reward."""

from common import make_envs, make_ppo, measure, parser, pin


def main() -> None:
    options = parser(__doc__).parse_args()
    pin(options)
    from stable_baselines3.common.vec_env import VecNormalize

    envs = VecNormalize(make_envs(options))
    ppo = make_ppo(envs, options)
    measure(
        "sb3_ppo",
        train=lambda steps: ppo.learn(steps, reset_num_timesteps=False),
        mean_action=lambda obs: ppo.predict(envs.normalize_obs(obs), deterministic=True)[0],
        options=options,
    )


if __name__ == "__main__":
    main()
