"""The `llama` extractor: a local instruct model in GGUF, through llama-cpp-python.

Decoding is greedy and reproducible. The instruction is evaluated once, when the model loads, and
its key-value cache is reused by every call; only the answer's own tokens differ, so the same
answer gets the same claims whatever was extracted before it. The answer is tokenised apart from
the chat template and never as control tokens: an answer that says ``<|im_end|>`` says just that.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halldetect.claims.extractor import Extraction
from halldetect.claims.model import FinishReason
from halldetect.errors import LimitError, ModelError
from halldetect.file_digest import sha256_of_file
from halldetect.provenance import ModelProvenance

if TYPE_CHECKING:
    from llama_cpp import Llama

MAX_NEW_TOKENS = 512  # paper section 3.1
DEFAULT_CONTEXT_TOKENS = 4096
INSTRUCTION = (
    "List the answer's factual claims as standalone sentences, one per line, exactly as the "
    "answer states them, even when they are implausible or contradict each other. Use no outside "
    "knowledge, correct nothing, rephrase nothing, explain nothing. Write at most {max_claims} "
    "claims.\n\nAnswer:\n"
)
# Private-use characters: no chat template and no tokenizer gives them a meaning.
_ANSWER_SLOT = "\ue000answer\ue001"
_LOOP_REPEATS = 4
_LOOP_MIN_TOKENS = 32
_LOOP_MAX_PERIOD = 64


class LlamaExtractor:
    """Claim extractor over one llama.cpp context; one caller at a time.

    Parameters
    ----------
    path : Path
        GGUF file with a chat template.
    gpu_layers : int
        Layers to offload; -1 for all.
    threads : int or None
        CPU threads; None leaves the choice to llama.cpp.
    context_tokens : int
        Size of the context: instruction, answer window and new tokens together.
    on_token : callable, optional
        Called before every token is taken; an exception from it ends the call and reaches the
        caller, and the next call is none the worse for it.

    Raises
    ------
    ModelError
        When llama-cpp-python is not installed or the file cannot be used.
    """

    def __init__(
        self,
        path: Path,
        *,
        gpu_layers: int = 0,
        threads: int | None = None,
        context_tokens: int = DEFAULT_CONTEXT_TOKENS,
        on_token: Callable[[], None] | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._path = path
        self._context_tokens = context_tokens
        self._on_token = on_token
        self._llama = _load(path, gpu_layers, threads, context_tokens)
        self._formatter = _chat_formatter(self._llama, path)
        # The cache holds what comes before the number of claims, and never more: with another
        # number the tokens after it would be computed beside other ones, and rounded otherwise.
        heads = [self._prompt_around_answer(number)[0] for number in (10, 99)]
        warm = [a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(*heads, strict=False))]
        self._llama.eval(warm)
        self._warm_tokens = len(warm)
        self.provenance = _provenance(self._llama, path, gpu_layers)

    def extract(self, text: str, max_claims: int, ends_at: float = inf) -> Extraction:
        """Propose at most `max_claims` claims for `text` by greedy decoding.

        The time is looked at between two tokens: a call into llama.cpp that never returns is not
        ended by it.

        Raises
        ------
        LimitError
            When instruction, `text` and `MAX_NEW_TOKENS` do not fit the context together.
        """
        with self._lock:
            head, tail = self._prompt_around_answer(max_claims)
            answer = self._llama.tokenize(text.encode(), add_bos=False, special=False)
            prompt = [*head, *answer, *tail]
            if len(prompt) + MAX_NEW_TOKENS > self._context_tokens:
                raise LimitError(
                    f"the answer window needs {len(prompt)} prompt tokens and {MAX_NEW_TOKENS} new "
                    f"ones, but the extractor's context holds {self._context_tokens}: raise "
                    "HALLDETECT_EXTRACTOR_CONTEXT_TOKENS"
                )
            tokens, finish = self._decode(prompt, max_claims, ends_at)
            output = self._llama.detokenize(tokens).decode("utf-8", errors="replace")
        return Extraction(output, finish, len(prompt), len(tokens))

    def _prompt_around_answer(self, max_claims: int) -> tuple[list[int], list[int]]:
        """Return the prompt's tokens before and after the answer."""
        message = INSTRUCTION.format(max_claims=max_claims) + _ANSWER_SLOT
        prompt = self._formatter(messages=[{"role": "user", "content": message}]).prompt
        if prompt.count(_ANSWER_SLOT) != 1:
            raise ModelError(f"{self._path}: the chat template does not repeat the user's message")
        before, after = prompt.split(_ANSWER_SLOT)
        # A template that writes the begin-of-text token itself must not get a second one.
        begin = self._llama.detokenize([self._llama.token_bos()], special=True).decode(
            errors="replace"
        )
        add_begin = not (begin and before.startswith(begin))
        head = self._llama.tokenize(before.encode(), add_bos=add_begin, special=True)
        return head, self._llama.tokenize(after.encode(), add_bos=False, special=True)

    def _decode(
        self, prompt: list[int], max_claims: int, ends_at: float
    ) -> tuple[list[int], FinishReason]:
        import llama_cpp

        # Forget everything after the instruction: the next call must not see this one's state.
        self._llama.n_tokens = min(self._warm_tokens, self._llama.n_tokens)
        vocabulary = llama_cpp.llama_model_get_vocab(self._llama.model)
        tokens: list[int] = []
        lines = 0
        for token in self._llama.generate(prompt, temp=0.0, repeat_penalty=1.0):
            if self._on_token is not None:
                self._on_token()
            if time.monotonic() >= ends_at:
                return tokens, FinishReason.TIME
            if llama_cpp.llama_vocab_is_eog(vocabulary, token):
                return tokens, FinishReason.STOP
            tokens.append(token)
            if is_looping(tokens):
                return tokens, FinishReason.REPETITION
            if b"\n" in self._llama.detokenize([token]):
                lines += 1
                if lines >= 2 * max_claims:
                    return tokens, FinishReason.CAP
            if len(tokens) >= MAX_NEW_TOKENS:
                return tokens, FinishReason.LENGTH
        return tokens, FinishReason.STOP


def is_looping(tokens: list[int]) -> bool:
    """Tell whether the output ends in the same stretch of tokens several times over.

    Greedy decoding that has entered such a loop never leaves it; all that would follow is repeats.
    """
    for period in range(1, _LOOP_MAX_PERIOD + 1):
        length = max(_LOOP_REPEATS * period, _LOOP_MIN_TOKENS)
        if length > len(tokens):
            return False
        if tokens[-1] != tokens[-1 - period]:
            continue
        if tokens[-length:-period] == tokens[-length + period :]:
            return True
    return False


def _load(path: Path, gpu_layers: int, threads: int | None, context_tokens: int) -> Llama:
    # OpenMP's threads spin while they wait; beside another busy process (the NLI worker) that made
    # extraction three to four times slower on two cores. Read once, when the library loads.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        import jinja2
        import llama_cpp
    except ImportError as error:
        raise ModelError(
            "the llama extractor needs llama-cpp-python: run `make install`, or "
            "`pip install 'halldetect[llama]'` (it compiles for several minutes), or use "
            "--extractor sentences"
        ) from error
    _check_file(path)
    try:
        with _no_amx_buffers(llama_cpp):
            return llama_cpp.Llama(
                str(path),
                n_gpu_layers=gpu_layers,
                n_ctx=context_tokens,
                n_threads=threads,
                n_threads_batch=threads,
                verbose=False,
            )
    except jinja2.TemplateError as error:  # llama-cpp-python compiles the template as it loads
        raise ModelError(f"{path}: the chat template cannot be compiled ({error})") from error
    except (ValueError, RuntimeError, OSError) as error:
        raise ModelError(
            f"{path}: llama.cpp cannot load this GGUF file ({error}); it may be cut short or of "
            "an old format: fetch it again and compare its SHA-256"
        ) from error


def _check_file(path: Path) -> None:
    """Refuse what is plainly no GGUF file before llama.cpp gets to see it."""
    if not path.exists():
        raise ModelError(f"{path}: no such GGUF file; set HALLDETECT_EXTRACTOR_MODEL")
    if not path.is_file():
        raise ModelError(f"{path}: is no file; HALLDETECT_EXTRACTOR_MODEL must name a GGUF file")
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror})") from error
    if magic != b"GGUF":
        raise ModelError(f"{path}: is no GGUF file (it starts with {magic!r})")


@contextmanager
def _no_amx_buffers(llama_cpp: Any) -> Iterator[None]:
    """Load without llama.cpp's repacked weight buffers when it was built for AMX.

    On virtual machines whose processor advertises AMX, the AMX kernels die of an illegal
    instruction; the ordinary AVX-512 kernels run everywhere. The class offers no option for it,
    so the defaults that it reads are changed while it loads.
    """
    if b"AMX_INT8 = 1" not in llama_cpp.llama_print_system_info():
        yield
        return
    module = llama_cpp.llama_cpp
    original = module.llama_model_default_params

    def without_extra_buffers() -> Any:
        parameters = original()
        parameters.use_extra_bufts = False
        return parameters

    module.llama_model_default_params = without_extra_buffers
    try:
        yield
    finally:
        module.llama_model_default_params = original


def _chat_formatter(llama: Llama, path: Path) -> Any:
    """Return the file's own chat template, rendered in a sandbox."""
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter

    template = llama.metadata.get("tokenizer.chat_template")
    if not template:
        raise ModelError(f"{path}: the GGUF file has no chat template; use an instruct model")

    def text_of(token: int) -> str:
        return str(llama.detokenize([token], special=True), errors="replace")

    try:
        formatter = Jinja2ChatFormatter(
            template=template,
            eos_token=text_of(llama.token_eos()),
            bos_token=text_of(llama.token_bos()),
        )
        formatter(messages=[{"role": "user", "content": "test"}])
    except Exception as error:  # a template is a program from the file: it can fail in any way
        raise ModelError(f"{path}: the chat template cannot be rendered ({error})") from error
    return formatter


def _provenance(llama: Llama, path: Path, gpu_layers: int) -> ModelProvenance:
    import ctypes

    import llama_cpp

    description = ctypes.create_string_buffer(128)
    llama_cpp.llama_model_desc(llama.model, description, len(description))
    return ModelProvenance(
        name=path.name,
        backend="llama",
        revision=f"sha256:{sha256_of_file(path)}",
        dtype=description.value.decode().split(" ")[-1],
        device="cpu" if gpu_layers == 0 else "gpu",
        libraries={"llama-cpp-python": llama_cpp.__version__},
    )
