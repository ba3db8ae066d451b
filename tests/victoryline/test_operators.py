import ast
from pathlib import Path
from unittest.mock import Mock

import pytest

from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.operators import UNNAMED_OPERATOR, name_of

COMMANDS = sorted(PROJECT_ROOT.glob("*/management/**/*.py"))


class TestNameOf:
    def test_a_given_name_is_used(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("getpass.getuser", lambda: "root")
        assert (name_of("ann"), name_of(None), name_of("")) == ("ann", "root", "root")

    @pytest.mark.parametrize("error", [KeyError("getpwuid(): uid not found: 12345"), OSError("No username set")])
    def test_a_user_without_a_name_is_called_operator(self, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
        """Containers run under any number."""
        monkeypatch.setattr("getpass.getuser", Mock(side_effect=error))
        assert name_of(None) == UNNAMED_OPERATOR


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_no_command_reads_the_login_name_itself(path: Path) -> None:
    imported = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Import)]
    assert "getpass" not in {alias.name for node in imported for alias in node.names}
