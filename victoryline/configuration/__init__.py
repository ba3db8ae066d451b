"""Every variable that VictoryLine reads: declared once with type, default, limits, YAML key and explanation.

`scraper_settings` and `service_settings` declare, `fields` reads single values, `loading` reads all of them.
`victoryline.settings` calls `load(os.environ)` and keeps the result as `settings.CONFIG`; no other module reads the
environment. After a change run `make config-docs`.
"""

from victoryline.configuration.fields import PROJECT_ROOT
from victoryline.configuration.loading import Config, ConfigError, load

__all__ = ["PROJECT_ROOT", "Config", "ConfigError", "load"]
