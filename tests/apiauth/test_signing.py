"""The keys that sign tokens: rotated while the web runs, without ending a token before its time."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import jwt
import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from apiauth import signing, tokens
from apiauth.models import ApiKey, Consumer
from apiauth.signing import check_signing_keys
from monitoring.models import AuditEntry
from victoryline.lib.files import EmptySecretError, read_or_create, rewrite_private

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("FR-026")]
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def key() -> ApiKey:
    return ApiKey(consumer=Consumer(name="acme"), prefix="0123456789ab", scopes=["read"])


@pytest.fixture
def file(settings: Any, tmp_path: Path) -> Iterator[Path]:
    """A system that keeps its signing keys in a file."""
    settings.JWT_SIGNING_KEY, settings.JWT_PREVIOUS_KEYS = "", ()
    settings.JWT_SIGNING_KEY_FILE = tmp_path / "jwt_signing_key"
    read_or_create(settings.JWT_SIGNING_KEY_FILE)
    forget_loaded_keys()
    yield settings.JWT_SIGNING_KEY_FILE
    forget_loaded_keys()


@pytest.fixture
def environment(settings: Any) -> Iterator[Any]:
    settings.JWT_SIGNING_KEY = "the present key, which is long enough to be one"
    settings.JWT_PREVIOUS_KEYS = ("the key before it, which was long enough as well",)
    forget_loaded_keys()
    yield settings
    forget_loaded_keys()


def rotate() -> str:
    out = StringIO()
    call_command("rotate_signing_key", "--by", "anna", stdout=out)
    return out.getvalue()


def make(key: ApiKey) -> str:
    return tokens.make(key, timezone.now()).text


def forget_loaded_keys() -> None:
    """As in a process that has just started."""
    signing._ring = None


def kid(token: str) -> str:
    return str(jwt.get_unverified_header(token)["kid"])


class TestRotation:
    def test_signs_with_a_new_key_and_still_accepts_what_the_old_ones_signed(self, file: Path, key: ApiKey) -> None:
        made = [make(key)]
        for _ in range(2):
            output = rotate()
            made.append(make(key))
            assert kid(made[-1]) in output
        assert len({kid(token) for token in made}) == 3
        assert [tokens.read(token) for token in made] == [key.prefix] * 3
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        entry = AuditEntry.objects.filter(action_type="signing_key_rotated").latest("pk")
        assert (entry.actor, entry.target, entry.metadata["old_kid"]) == ("anna", kid(made[2]), kid(made[1]))

    def test_ends_all_tokens_when_the_key_has_leaked(self, file: Path, key: ApiKey) -> None:
        rotate()
        leaked = make(key)
        out = StringIO()
        call_command("rotate_signing_key", "--end-tokens", stdout=out)
        assert "All tokens made before have ended" in out.getvalue()
        with pytest.raises(tokens.BadTokenError, match="not in use here"):
            tokens.read(leaked)
        assert tokens.read(make(key)) == key.prefix

    def test_drops_keys_that_no_living_token_needs(self, file: Path, settings: Any) -> None:
        first = signing.key_ring().current
        signing.rotate_file(NOW)
        life = timedelta(hours=settings.CONFIG.token_lifetime_hours) + signing.GRACE
        second = signing.rotate_file(NOW + life - timedelta(seconds=1)).current
        assert first.secret in file.read_text()
        signing.rotate_file(NOW + life)
        assert first.secret not in file.read_text()
        assert second.secret in file.read_text()

    def test_a_retired_key_verifies_no_longer_than_its_tokens_could_live(self, file: Path) -> None:
        old = signing.key_ring().current
        ring = signing.rotate_file(NOW)
        assert ring.find(old.id, NOW + timedelta(hours=24)) is ring.keys[1]
        assert ring.find(old.id, NOW + timedelta(hours=24, minutes=5)) is None

    def test_is_noticed_by_a_process_that_runs_on(self, file: Path, key: ApiKey) -> None:
        """Another process rotates, and signs at once; here the file was looked at a moment ago."""
        mine = make(key)
        known = signing.key_ring()
        text = signing.new_key()
        rewrite_private(file, lambda before: f"{text}\n{datetime.now(UTC).isoformat()} {before.strip()}\n")
        assert signing.key_ring() is known  # looked at within the last second
        claims = jwt.decode(mine, options={"verify_signature": False})
        theirs = jwt.encode(claims, text, algorithm="HS256", headers={"kid": signing.key_id(text)})
        assert tokens.read(theirs) == key.prefix
        assert tokens.read(mine) == key.prefix
        assert kid(make(key)) == signing.key_id(text)

    def test_is_noticed_within_a_second_without_such_a_token(self, file: Path, monkeypatch) -> None:
        known = signing.key_ring()
        file.write_text(signing.new_key())
        later = signing.time.monotonic() + signing.RELOAD_SECONDS
        monkeypatch.setattr("apiauth.signing.time.monotonic", lambda: later)
        assert signing.key_ring().current != known.current

    def test_of_two_at_once_loses_neither(self, file: Path) -> None:
        """Each is a process of its own that adds one line; none may overwrite another's."""
        script = (
            "import sys; from pathlib import Path; from victoryline.lib.files import rewrite_private\n"
            "for n in range(20):\n"
            "    rewrite_private(Path(sys.argv[1]), lambda text: f'{text.strip()}\\n{sys.argv[2]}{n}')"
        )
        writers = [subprocess.Popen([sys.executable, "-c", script, str(file), name]) for name in ("a", "b")]
        assert [writer.wait(30) for writer in writers] == [0, 0]
        assert len(file.read_text().split()) == 41

    def test_ends_the_tokens_of_a_key_that_is_gone(self, file: Path, key: ApiKey) -> None:
        lost = make(key)
        assert tokens.read(lost) == key.prefix
        file.write_text(signing.new_key())
        forget_loaded_keys()
        with pytest.raises(tokens.BadTokenError, match="not in use here, or no longer"):
            tokens.read(lost)

    def test_is_by_hand_where_the_key_comes_from_the_environment(self, environment: Any, key: ApiKey) -> None:
        before = make(key)
        output = rotate()
        assert "Nothing was changed" in output
        assert "JWT_PREVIOUS_KEYS=" in output
        assert environment.JWT_SIGNING_KEY not in output
        assert kid(make(key)) == kid(before)


class TestEnvironment:
    def test_keys_before_the_present_one_still_verify(self, environment: Any, key: ApiKey) -> None:
        present, before = environment.JWT_SIGNING_KEY, environment.JWT_PREVIOUS_KEYS[0]
        environment.JWT_SIGNING_KEY, environment.JWT_PREVIOUS_KEYS = before, ()
        forget_loaded_keys()
        old = make(key)
        environment.JWT_SIGNING_KEY, environment.JWT_PREVIOUS_KEYS = present, (before,)
        forget_loaded_keys()
        assert tokens.read(old) == key.prefix
        assert kid(make(key)) == signing.key_id(present)
        environment.JWT_PREVIOUS_KEYS = ()
        forget_loaded_keys()
        with pytest.raises(tokens.BadTokenError):
            tokens.read(old)


class TestChecks:
    @pytest.mark.parametrize(
        ("fields", "ids"),
        [
            ({"JWT_SIGNING_KEY": "a" * 32}, []),
            ({"JWT_SIGNING_KEY": ""}, []),
            ({"JWT_SIGNING_KEY": "a" * 31}, ["apiauth.W001"]),
            ({"JWT_SIGNING_KEY": "a" * 32, "JWT_PREVIOUS_KEYS": ("short",)}, ["apiauth.W001"]),
            ({"JWT_SIGNING_KEY": "the same as SECRET_KEY, for whatever reason"}, ["apiauth.W002"]),
        ],
    )
    def test_warn_of_keys_that_do_not_protect(self, settings: Any, fields: dict[str, Any], ids: list[str]) -> None:
        settings.SECRET_KEY, settings.JWT_PREVIOUS_KEYS = "the same as SECRET_KEY, for whatever reason", ()
        for name, value in fields.items():
            setattr(settings, name, value)
        found = check_signing_keys()
        assert [each.id for each in found] == ids
        assert all(each.hint for each in found)
        assert not any(value and value in str(found) for value in fields.values() if isinstance(value, str))


class TestFile:
    def test_of_one_line_from_before_rotation_is_a_key(self, file: Path, key: ApiKey) -> None:
        file.write_text("a key made by an earlier version, with no newline")
        forget_loaded_keys()
        token = make(key)
        assert tokens.read(token) == key.prefix
        rotate()
        assert tokens.read(token) == key.prefix

    def test_does_not_verify_a_token_without_a_key_id(self, file: Path, key: ApiKey) -> None:
        claims = jwt.decode(make(key), options={"verify_signature": False})
        token = jwt.encode(claims, signing.key_ring().current.secret, algorithm="HS256")
        with pytest.raises(tokens.BadTokenError, match="not in use here"):
            tokens.read(token)

    def test_with_lines_that_cannot_be_read_loses_only_those(self, file: Path, caplog) -> None:
        old = signing.key_ring().current
        signing.rotate_file(timezone.now())
        file.write_text(file.read_text() + "nonsense\n2026-01-01T00:00:00 without-a-zone\n\n")
        forget_loaded_keys()
        assert [key.id for key in signing.key_ring().keys][1:] == [old.id]
        assert "Line 3" in caplog.text
        assert old.secret not in caplog.text

    def test_that_vanishes_leaves_what_is_known(self, file: Path, key: ApiKey) -> None:
        token = make(key)
        file.unlink()
        signing.key_ring(reload=True)
        assert tokens.read(token) == key.prefix
        with pytest.raises(CommandError, match="Nothing was changed"):
            rotate()

    def test_that_is_empty_is_refused_at_the_start(self, tmp_path: Path) -> None:
        (tmp_path / "key").write_text("\n")
        with pytest.raises(EmptySecretError, match="is empty"):
            read_or_create(tmp_path / "key")

    def test_never_shows_a_key_in_a_traceback(self, file: Path) -> None:
        ring = signing.key_ring()
        assert ring.current.secret not in repr(ring)
