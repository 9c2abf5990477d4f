import sys

import pytest

from cli import __main__ as start


def test_an_interrupt_while_the_command_loads_is_no_traceback(monkeypatch, capsys):
    class Interrupting:
        def find_spec(self, name, path=None, target=None):
            if name == "cli.main":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "cli.main", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    with pytest.raises(SystemExit) as exit_:
        start.main()
    assert exit_.value.code == 130
    assert capsys.readouterr().err == "halldetect: interrupted\n"
