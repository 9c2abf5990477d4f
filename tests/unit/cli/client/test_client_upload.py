import gzip
import os
import threading

import pytest

from cli.client.upload import Upload, open_upload
from halldetect.errors import InputError

CONTENT = b'{"source": "caf\xc3\xa9", "response": "\\udc00"}\n' * 50_000


def test_a_file_goes_out_whole_and_the_same_each_time(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_bytes(CONTENT)
    noted = []
    with open_upload(str(path)) as upload:
        first = b"".join(upload.compressed(noted.append))
        again = b"".join(upload.compressed(lambda _: None))
        assert upload.size == len(CONTENT)
    assert gzip.decompress(first) == CONTENT
    assert first == again
    assert len(first) < len(CONTENT) / 10
    assert noted == sorted(noted)
    assert noted[-1] == len(CONTENT)
    assert len(noted) > 2


def test_an_empty_file_is_sent_too_so_that_the_service_words_the_refusal(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"")
    with open_upload(str(path)) as upload:
        assert gzip.decompress(b"".join(upload.compressed(lambda _: None))) == b""


def test_a_pipe_can_be_sent_twice(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(CONTENT,))
    writer.start()
    with open_upload(str(path)) as upload:
        writer.join()
        sent = [b"".join(upload.compressed(lambda _: None)) for _ in range(2)]
    assert [gzip.decompress(content) for content in sent] == [CONTENT, CONTENT]


@pytest.mark.parametrize(("name", "reason"), [("none.jsonl", "no such file"), (".", "a directory")])
def test_what_cannot_be_read_is_named(tmp_path, monkeypatch, name, reason):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"^{name}: .*{reason}"), open_upload(name):
        pass


def test_a_file_that_fails_on_the_way_is_named(tmp_path):
    with (tmp_path / "write-only").open("wb") as file:
        upload = Upload("in.jsonl", file)
        with pytest.raises(InputError, match=r"^in\.jsonl: cannot be read"):
            list(upload.compressed(lambda _: None))
