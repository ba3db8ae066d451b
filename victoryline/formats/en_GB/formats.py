"""Time formats of the console, with seconds."""

DATE_FORMAT = "j M Y"
TIME_FORMAT = "H:i:s"
DATETIME_FORMAT = "j M Y, H:i:s"
SHORT_DATETIME_FORMAT = "j M, H:i:s"
