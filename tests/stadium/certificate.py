"""A certificate for 127.0.0.1, and how Chromium is made to trust it."""

from __future__ import annotations

import base64
import hashlib
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certificate:
    file: Path  # with the key
    key_hash: str  # of the public key, as Chromium's switch takes it

    def trusting(self, program: Path) -> Path:
        """Returns a program that starts Chromium so that it trusts this certificate only."""
        script = self.file.with_name("chromium")
        script.write_text(f'#!/bin/sh\nexec "{program}" "--ignore-certificate-errors-spki-list={self.key_hash}" "$@"\n')
        script.chmod(0o755)
        return script


def make_certificate(folder: Path) -> Certificate:
    file = folder / "stadium.pem"
    name = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(file))
    certificate = _openssl("req", "-x509", *key, *name)
    with file.open("ab") as end:
        end.write(certificate)
    public = _openssl("pkey", "-in", str(file), "-pubout", "-outform", "der")
    return Certificate(file, base64.b64encode(hashlib.sha256(public).digest()).decode())


def _openssl(*arguments: str) -> bytes:
    return subprocess.run(("openssl", *arguments), check=True, capture_output=True).stdout
