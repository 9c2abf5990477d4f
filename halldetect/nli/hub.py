"""Where a torch checkpoint lies: a local folder, the hub's cache, or the hub itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

from halldetect.errors import ModelError
from halldetect.nli.checkpoint import CONFIG_FILE, TOKENIZER_FILE, one_line

# Weights only as safetensors: a pickle can run code when it is loaded.
_TOKENIZER_FILES = ["config.json", "tokenizer.json", "tokenizer_config.json"]
_WEIGHT_FILES = [
    "model.safetensors",
    "model-*.safetensors",
    "model.safetensors.index.json",
]
_HUB_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
_ETAG_TIMEOUT_SECONDS = 5


@dataclass(frozen=True, slots=True)
class LocatedModel:
    """A checkpoint on this machine.

    Parameters
    ----------
    name : str
        Hub id, or the folder's name.
    folder : Path
        Where its files are.
    commit : str
        Commit of a hub model; empty for a local folder.
    """

    name: str
    folder: Path
    commit: str


def locate_model(
    location: str, revision: str | None, *, may_download: bool = True, with_weights: bool = True
) -> LocatedModel:
    """Find a checkpoint: as a folder, then in the hub's cache, then on the hub.

    Parameters
    ----------
    location : str
        A folder, or a hub id such as ``owner/model``.
    revision : str, optional
        Commit, tag or branch of a hub model.
    may_download : bool
        Whether the hub may be asked for a model that is not in the cache.
    with_weights : bool
        False for a caller that only reads configuration and tokenizer: no weights are fetched.

    Returns
    -------
    LocatedModel
        With its files on this machine.

    Raises
    ------
    ModelError
        When there is no such folder, when a revision of a folder is asked for, and when the hub
        cannot be asked or has no such model. A hub that does not answer is asked once.
    """
    path = Path(location).expanduser()
    if path.is_dir():
        if revision is not None:
            raise ModelError(
                f"{location}: a local folder has no revisions, but {revision!r} was asked for; "
                "leave the revision out"
            )
        return LocatedModel(path.resolve().name, path, "")
    if path.exists():
        raise ModelError(f"{location}: a file, but an NLI model is a folder; give its folder")
    if not _HUB_ID.fullmatch(location):
        raise ModelError(f"{location}: there is no such NLI model folder; check the path")
    folder = _cached(location, revision, with_weights)
    if folder is None and not may_download:
        raise ModelError(
            f"{location}: not in the Hugging Face cache, and nothing is fetched that you did not "
            "name; set HALLDETECT_NLI_MODEL to this id to fetch it, or to a local folder"
        )
    folder = folder or _download(location, revision, with_weights)
    return LocatedModel(location, folder, folder.name)


def _cached(location: str, revision: str | None, with_weights: bool) -> Path | None:
    try:
        folder = Path(
            snapshot_download(
                location,
                revision=revision,
                allow_patterns=_wanted_files(with_weights),
                local_files_only=True,
            )
        )
    except LocalEntryNotFoundError:
        return None
    except HFValidationError as error:
        raise ModelError(
            f"{location}: neither a folder nor a hub id ({one_line(error)}); check the path"
        ) from error
    # The cache also keeps models of which only some files were ever asked for.
    complete = all((folder / name).is_file() for name in (CONFIG_FILE, TOKENIZER_FILE))
    if with_weights:
        complete = complete and any(folder.glob("*.safetensors"))
    return folder if complete else None


def _wanted_files(with_weights: bool) -> list[str]:
    return [*_TOKENIZER_FILES, *(_WEIGHT_FILES if with_weights else [])]


def _download(location: str, revision: str | None, with_weights: bool) -> Path:
    try:
        return Path(
            snapshot_download(
                location,
                revision=revision,
                allow_patterns=_wanted_files(with_weights),
                etag_timeout=_ETAG_TIMEOUT_SECONDS,
            )
        )
    except Exception as error:  # the hub's, the network's and the disk's errors share no base
        raise ModelError(
            f"{location}: not in the Hugging Face cache, and the download failed "
            f"({one_line(error)}); give a local folder with config.json, tokenizer.json and "
            "model.safetensors, or check the id, the revision and the network"
        ) from error
