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
    import onnx.parser
    import onnxruntime
    rng = numpy.random.default_rng(0)
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 17]>
        block (float[3,50,256] x, float[256,1024] up, float[1024,256] down) => (float[3,50,256] y) {
            a = MatMul(x, up)
            b = Relu(a)
            c = MatMul(b, down)
            d = Add(c, x)
            y = Softmax(d)
        }""")
    onnx.save(model, "model.onnx")
    sizes = {"x": (3, 50, 256), "up": (256, 1024), "down": (1024, 256)}
    inputs = {name: rng.standard_normal(size).astype("float32") for name, size in sizes.items()}
    exec(snippet, {"onnxruntime": onnxruntime, "inputs": inputs})
    print("onnxruntime", onnxruntime.__version__)


for snippet in snippets:
    try:
        (pytorch if "torch.profiler" in snippet else onnx_runtime)(snippet)
    except Exception as error:
        print("FAILED", type(error).__name__, error)
