"""ONNX: input `obs` [n, columns] as the environment gives it, output `action` [n, …] as the environment takes it."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from iddm.policy import Policy
from iddm.utils.extras import need
from iddm.utils.files import write_whole

OPSET, IR_VERSION = 17, 8
"""Old enough for runtimes of 2022."""


def export_onnx(policy: Policy, out: Path) -> None:
    """The most likely action, with the normaliser before and the action's limits after the network."""
    onnx = need("onnx", "onnx", "ONNX files")
    helper, space = onnx.helper, policy.action_space
    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(name: str, value: np.ndarray) -> str:
        constants.append(onnx.numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def apply(kind: str, *inputs: str, to: str | None = None, **attributes: Any) -> str:
        name = to or f"{kind.lower()}{len(nodes)}"
        nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    float32 = np.float32
    x = apply("Sub", "obs", constant("mean", policy.mean.astype(float32)))
    x = apply("Div", x, constant("std", policy.std.astype(float32)))
    x = apply("Clip", x, constant("least", np.array(-policy.clip, float32)), constant("most", np.array(policy.clip, float32)))
    last = len(policy.weights) - 1
    for i, (weight, bias) in enumerate(policy.mode_layers()):
        x = apply("MatMul", x, constant(f"weight{i}", weight.astype(float32)))
        x = apply("Add", x, constant(f"bias{i}", bias.astype(float32)))
        x = x if i == last else apply({"tanh": "Tanh", "relu": "Relu"}[policy.activation], x)
    if space.discrete:
        x = apply("ArgMax", x, axis=-1, keepdims=0)
        apply("Add", x, constant("start", np.array(space.start, np.int64)), to="action")
        result = helper.make_tensor_value_info("action", onnx.TensorProto.INT64, ["n"])
    else:
        centre, scale = space.centre_and_scale
        x = apply("Tanh", x) if policy.squashed else x
        x = apply("Mul", x, constant("scale", scale.astype(float32)))
        x = apply("Add", x, constant("centre", centre.astype(float32)))
        x = apply("Max", x, constant("low", np.array(space.low, float32)))
        x = apply("Min", x, constant("high", np.array(space.high, float32)))
        apply("Reshape", x, constant("shape", np.array([-1, *space.shape], np.int64)), to="action")
        result = helper.make_tensor_value_info("action", onnx.TensorProto.FLOAT, ["n", *space.shape])
    obs = helper.make_tensor_value_info("obs", onnx.TensorProto.FLOAT, ["n", policy.obs_size])
    graph = helper.make_graph(nodes, "policy", [obs], [result], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="iddm")
    helper.set_model_props(model, {"iddm": json.dumps(policy.config, sort_keys=True)})
    onnx.checker.check_model(model)
    write_whole(out, model.SerializeToString())
