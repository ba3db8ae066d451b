"""Creates users for the baseline and prints a simplejwt token of each as one JSON list."""

from __future__ import annotations

import json
import sys

import django


def main() -> None:
    django.setup()
    from django.contrib.auth.models import User
    from rest_framework_simplejwt.tokens import AccessToken

    names = [f"plain-{number}" for number in range(int(sys.argv[1]))]
    users = User.objects.bulk_create(User(username=name) for name in names)
    print(json.dumps([str(AccessToken.for_user(user)) for user in users]), flush=True)


if __name__ == "__main__":
    main()
