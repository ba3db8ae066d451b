"""The credentials of the embedded system: an admin login, an API key, and a banner that shows them.

Login and key stay the same from start to start; they are in VAR_DIR/demo.json, readable by its owner only.
"""

import json
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from victoryline.lib.files import write_private

ADMIN_USER = "admin"


@dataclass(frozen=True, kw_only=True)
class Demo:
    url: str
    admin_user: str
    admin_password: str
    api_key: str


def prepare(*, url: str, var_dir: Path) -> Demo:
    """Checks the login and the key of VAR_DIR/demo.json and replaces those that do not work."""
    from django.utils import timezone

    from apiauth import keys

    path = var_dir / "demo.json"
    known = _read_known(path)
    password, key = _ensure_admin(known.get("admin_password", "")), known.get("api_key", "")
    if not (key and keys.verify(key, timezone.now())):
        key = keys.issue_demo_key()
    demo = Demo(url=url, admin_user=ADMIN_USER, admin_password=password, api_key=key)
    write_private(path, json.dumps(asdict(demo), indent=2) + "\n")
    return demo


def banner(demo: Demo, *, log_dir: Path) -> str:
    get_token = (
        f"curl -s -X POST {demo.url}/token/generate-token -H 'Content-Type: application/json' "
        f"""-d '{{"api_key":"{demo.api_key}"}}'"""
    )
    pick = """sed -n 's/.*"token" *: *"\\([^"]*\\)".*/\\1/p'"""
    return f"""
  VictoryLine is running.

    Status page   {demo.url}/
    Admin         {demo.url}/admin/   user {demo.admin_user}   password {demo.admin_password}
    API docs      {demo.url}/api/docs
    API key       {demo.api_key}

  A token, and with it the matches:

    {get_token}
    curl -i {demo.url}/api/v1/matches -H "Authorization: Bearer $({get_token} | {pick})"

  Logs are in {log_dir}. Ctrl-C stops everything.
"""


def _read_known(path: Path) -> dict[str, str]:
    """Returns the content of demo.json, empty if it is missing or damaged."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _ensure_admin(password: str) -> str:
    from django.contrib.auth import get_user_model

    user, _ = get_user_model().objects.get_or_create(username=ADMIN_USER)
    if password and user.is_active and user.is_superuser and user.check_password(password):
        return password
    password = secrets.token_urlsafe(12)
    user.is_active = user.is_staff = user.is_superuser = True
    user.set_password(password)
    user.save()
    return password
