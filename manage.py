#!/usr/bin/env python3
"""Django's command line. `python manage.py help` lists the commands."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "victoryline.settings")
    from django.core.management import execute_from_command_line

    from victoryline.lib.variables import ConfigError

    try:
        execute_from_command_line(sys.argv)
    except ConfigError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
