"""Template filters of the console: relative times, durations."""

from __future__ import annotations

from django import template

from victoryline.lib import shown

register = template.Library()
register.filter("ago", shown.ago)
register.filter("exact", shown.exact)
register.filter("duration", shown.duration)
