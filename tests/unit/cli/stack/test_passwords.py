import stat

from cli.stack.passwords import kept_password, write_private


def test_a_password_is_made_once_and_kept_for_its_owner(tmp_path):
    file = tmp_path / "password"
    password = kept_password(file)
    assert kept_password(file) == password
    assert len(password) >= 32
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_passwords_differ(tmp_path):
    assert kept_password(tmp_path / "one") != kept_password(tmp_path / "other")


def test_a_password_needs_no_escaping_in_an_address(tmp_path):
    assert kept_password(tmp_path / "p").replace("-", "").replace("_", "").isalnum()


def test_a_private_file_replaces_one_that_everybody_could_read(tmp_path):
    file = tmp_path / "file"
    file.write_text("old")
    file.chmod(0o644)
    (tmp_path / "file.new").write_text("left by a write that was killed")
    write_private(file, "new")
    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]
