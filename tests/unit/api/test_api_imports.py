from __future__ import annotations

import subprocess
import sys

FOREIGN = ["torch", "onnxruntime", "llama_cpp", "tokenizers", "transformers", "worker", "cli"]


def test_the_api_loads_no_model_library_and_no_worker():
    program = (
        "import sys; from api.app import create_app; from halldetect.settings import load_settings;"
        "create_app(load_settings(database_url='postgresql://a@127.0.0.1:1/a',"
        " redis_url='redis://127.0.0.1:1/0')).openapi();"
        f"print(sorted(set(sys.modules) & set({FOREIGN})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
