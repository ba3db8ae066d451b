"""The demo's login and key: made once, kept, renewed when they no longer work; and its database."""

import json
import os
import sqlite3
import stat
from contextlib import closing

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.utils import timezone

from apiauth import keys
from victoryline import demo
from victoryline.databases import databases

URL = "http://127.0.0.1:8000"
pytestmark = pytest.mark.django_db


class TestPrepare:
    def test_writes_working_credentials_for_the_owner_only(self, tmp_path):
        made = demo.prepare(url=URL, var_dir=tmp_path)
        path = tmp_path / "demo.json"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert json.loads(path.read_text()) == {
            "url": URL,
            "admin_user": "admin",
            "admin_password": made.admin_password,
            "api_key": made.api_key,
        }
        assert get_user_model().objects.get(username="admin").check_password(made.admin_password)
        assert get_user_model().objects.get(username="admin").is_superuser
        assert keys.verify(made.api_key, timezone.now())

    def test_keeps_them_from_start_to_start(self, tmp_path):
        assert demo.prepare(url=URL, var_dir=tmp_path) == demo.prepare(url=URL, var_dir=tmp_path)

    def test_follows_a_changed_address(self, tmp_path):
        first = demo.prepare(url=URL, var_dir=tmp_path)
        second = demo.prepare(url="http://127.0.0.1:9000", var_dir=tmp_path)
        assert (second.url, second.api_key) == ("http://127.0.0.1:9000", first.api_key)

    @pytest.mark.parametrize("text", [None, "", "{", "[]"])
    def test_makes_new_ones_when_the_file_is_lost_or_broken(self, tmp_path, text):
        first = demo.prepare(url=URL, var_dir=tmp_path)
        if text is None:
            (tmp_path / "demo.json").unlink()
        else:
            (tmp_path / "demo.json").write_text(text)
        second = demo.prepare(url=URL, var_dir=tmp_path)
        assert second.admin_password != first.admin_password
        assert keys.verify(second.api_key, timezone.now())
        assert not keys.verify(first.api_key, timezone.now())

    def test_replaces_a_key_that_was_revoked(self, tmp_path):
        first = demo.prepare(url=URL, var_dir=tmp_path)
        keys.revoke(prefix=keys.prefix_in(first.api_key), now=timezone.now())
        assert demo.prepare(url=URL, var_dir=tmp_path).api_key != first.api_key

    def test_a_changed_password_is_set_again(self, tmp_path):
        first = demo.prepare(url=URL, var_dir=tmp_path)
        admin = get_user_model().objects.get(username="admin")
        admin.set_password("something else entirely")
        admin.save()
        second = demo.prepare(url=URL, var_dir=tmp_path)
        assert second.admin_password != first.admin_password


class TestBanner:
    def test_has_all_addresses(self, tmp_path):
        made = demo.prepare(url=URL, var_dir=tmp_path)
        text = demo.banner(made, log_dir=tmp_path)
        for part in (f"{URL}/", f"{URL}/admin/", made.admin_password, made.api_key, "/token/generate-token"):
            assert part in text
        assert sum(line.strip().startswith("curl ") for line in text.splitlines()) == 2


def test_a_database_that_a_command_creates_is_private(tmp_path):
    before = os.umask(0o022)
    try:
        name = databases(settings.CONFIG.model_copy(update={"database_url": "", "var_dir": tmp_path}))["default"][
            "NAME"
        ]
        with closing(sqlite3.connect(name)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("CREATE TABLE t (x)")
            assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}
    finally:
        os.umask(before)
