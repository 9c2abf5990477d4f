"""The files of a model folder: which there must be, and whether they are those that were meant."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from halldetect.errors import ModelError
from halldetect.file_digest import sha256_of_file

CONFIG_FILE = "config.json"
TOKENIZER_FILE = "tokenizer.json"
WEIGHTS_FILE = "model.safetensors"
MANIFEST_FILE = "manifest.json"
# Form to graph file and to the numeric form its forward pass runs in.
ONNX_FORMS: dict[str, tuple[str, str]] = {
    "fp32": ("model.onnx", "float32"),
    "int8": ("model.int8.onnx", "int8 per row"),
}


def require_folder(folder: Path, files: tuple[str, ...]) -> None:
    """Refuse a model folder that lacks something.

    Parameters
    ----------
    folder : Path
        The model folder.
    files : tuple of str
        Names that must be there.

    Raises
    ------
    ModelError
        Naming the folder, what is missing, and what to do.
    """
    if not folder.exists():
        raise ModelError(f"{folder}: there is no such NLI model folder; check the path")
    if not folder.is_dir():
        raise ModelError(f"{folder}: a file, but an NLI model is a folder; give its folder")
    missing = [name for name in files if not (folder / name).is_file()]
    if missing:
        raise ModelError(
            f"{folder}: not a complete NLI model, {', '.join(missing)} is missing; "
            "download or convert the model again"
        )


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a model folder.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict
        The object.

    Raises
    ------
    ModelError
        When the file cannot be read or is no JSON object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read as JSON: {one_line(error)}") from error
    if not isinstance(content, dict):
        raise ModelError(f"{path}: not a JSON object")
    return content


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a model file in hexadecimal.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    str
        64 hexadecimal digits.

    Raises
    ------
    ModelError
        When the file cannot be read.
    """
    try:
        return sha256_of_file(path)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {one_line(error)}") from error


def check_digests(folder: Path, names: tuple[str, ...]) -> None:
    """Compare files with the folder's manifest, where it has one.

    Parameters
    ----------
    folder : Path
        The model folder.
    names : tuple of str
        Files about to be loaded.

    Raises
    ------
    ModelError
        Naming the first file whose digest differs, with both digests.
    """
    manifest_path = folder / MANIFEST_FILE
    if not manifest_path.is_file():
        return
    listed = read_json(manifest_path).get("files", {})
    for name in names:
        expected = listed.get(name, {}).get("sha256")
        if expected is not None and file_digest(folder / name) != expected:
            raise ModelError(
                f"{folder / name}: its SHA-256 is {file_digest(folder / name)}, but "
                f"{MANIFEST_FILE} says {expected}: the file is damaged or was replaced; fetch it "
                "again, or convert the new checkpoint with models/convert.py"
            )


@dataclass(frozen=True, slots=True)
class WeightsIdentity:
    """The weight files of a folder and one digest for all of them."""

    files: tuple[str, ...]
    sha256: str


def weights_identity(folder: Path) -> WeightsIdentity:
    """Name the safetensors files of a checkpoint and digest them.

    Parameters
    ----------
    folder : Path
        The model folder.

    Returns
    -------
    WeightsIdentity
        The digest is that of the file or, for a checkpoint in several files, that of the list of
        their digests.

    Raises
    ------
    ModelError
        When there is no safetensors file.
    """
    whole = (WEIGHTS_FILE,) if (folder / WEIGHTS_FILE).is_file() else ()
    files = whole or tuple(sorted(path.name for path in folder.glob("model-*.safetensors")))
    if not files:
        raise ModelError(
            f"{folder}: has no model.safetensors; pickled weights are not loaded, since a pickle "
            "can run code: convert the checkpoint to safetensors"
        )
    digests = [file_digest(folder / name) for name in files]
    if len(digests) == 1:
        return WeightsIdentity(files, digests[0])
    joined = "\n".join(digests).encode()
    return WeightsIdentity(files, hashlib.sha256(joined).hexdigest())


def one_line(error: BaseException) -> str:
    """Return an error's message as one line.

    Parameters
    ----------
    error : BaseException
        Any error.

    Returns
    -------
    str
        The message, or the type's name where there is none.
    """
    return " ".join(str(error).split()) or type(error).__name__
