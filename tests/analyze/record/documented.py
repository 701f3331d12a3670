"""Runs the Python snippets of docs/tracing.md as they stand there, and leaves what they write in FOLDER.

    python3 tests/analyze/record/documented.py FOLDER

Run in the root of the repository. FOLDER/run.py is then a script to hand to Nsight Compute.
"""
import os
import re
import sys

FOLDER = os.path.abspath(sys.argv[1])
snippets = re.findall(r"```python\n(.*?)```", open("docs/tracing.md").read(), re.S)
os.chdir(FOLDER)

RUN = '''import torch
block = torch.nn.Sequential(torch.nn.LayerNorm(1024), torch.nn.Linear(1024, 4096), torch.nn.GELU(),
                            torch.nn.Linear(4096, 1024)).to("cuda", torch.float16)
with torch.no_grad():
    block(torch.ones(200, 1024, device="cuda", dtype=torch.float16))
torch.cuda.synchronize()
'''
open("run.py", "w").write(RUN)


def pytorch(snippet):
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig
    config = LlamaConfig(vocab_size=5000, hidden_size=512, intermediate_size=1408, num_hidden_layers=2,
                         num_attention_heads=8, num_key_value_heads=2)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).to("cuda").eval()
    ids = torch.randint(3, 1000, (2, 60), device="cuda")
    with torch.no_grad():
        exec(snippet, {"torch": torch, "model": model, "ids": ids, "next_ids": ids[:, :1]})
    print("pytorch", torch.__version__, os.listdir("."))


def onnx_runtime(snippet):
    import numpy
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper
    rng = numpy.random.default_rng(0)
    up = helper.make_tensor("up", TensorProto.FLOAT, [256, 1024], rng.standard_normal(256 * 1024).astype("float32"))
    down = helper.make_tensor("down", TensorProto.FLOAT, [1024, 256], rng.standard_normal(1024 * 256).astype("float32"))
    nodes = [helper.make_node("MatMul", ["x", "up"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("MatMul", ["b", "down"], ["c"]), helper.make_node("Add", ["c", "x"], ["d"]),
             helper.make_node("Softmax", ["d"], ["y"], axis=-1)]
    graph = helper.make_graph(nodes, "block", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 50, 256])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 50, 256])], [up, down])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, "model.onnx")
    inputs = {"x": rng.standard_normal((3, 50, 256)).astype("float32")}
    exec(snippet, {"onnxruntime": onnxruntime, "inputs": inputs})
    print("onnxruntime", onnxruntime.__version__)


for snippet in snippets:
    try:
        (pytorch if "torch.profiler" in snippet else onnx_runtime)(snippet)
    except Exception as error:
        print("FAILED", type(error).__name__, error)
