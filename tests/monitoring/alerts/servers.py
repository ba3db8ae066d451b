"""Real servers on this machine that receive alerts: one for HTTP, one for SMTP. Both store what they receive."""

from __future__ import annotations

import base64
import socketserver
import ssl
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any, Self


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: bytes


class HttpReceiver:
    """Answers with `status` (and `headers`); while `hangs` is set it reads the request and sends nothing."""

    def __init__(self) -> None:
        self.got: list[Received] = []
        self.status, self.headers = 200, dict[str, str]()
        self.hangs = threading.Event()
        self.released = threading.Event()
        taker = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                taker.got.append(Received(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                if taker.hangs.is_set():
                    taker.released.wait(20)
                    return
                self.send_response(taker.status)
                for name, value in taker.headers.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/hook/s3cret?x=1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


@dataclass
class SmtpReceiver:
    """Implements the SMTP that a client needs; `answers` replaces the answer to a command."""

    certificate: Path | None = None
    is_tls_from_the_start: bool = False
    password: str = ""
    answers: dict[str, str] = field(default_factory=dict)
    got: list[EmailMessage] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    were_encrypted: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        taker = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                conversation = Conversation(taker, self)
                with suppress(OSError, ValueError):  # the client left
                    conversation.begin()
                    conversation.hold()
                conversation.end()

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]

    def context(self) -> ssl.SSLContext:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        assert self.certificate is not None
        made.load_cert_chain(self.certificate)
        return made

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class Conversation:
    def __init__(self, taker: SmtpReceiver, handler: socketserver.StreamRequestHandler) -> None:
        self.taker, self.socket = taker, handler.request
        self.lines: IO[bytes] = handler.rfile
        self.is_encrypted = False

    def begin(self) -> None:
        if self.taker.is_tls_from_the_start:
            self._encrypt()

    def end(self) -> None:
        self.lines.close()
        self.socket.close()

    def hold(self) -> None:
        self.say("220 here")
        while line := self.lines.readline():
            verb = line.strip().split(b" ")[0].upper().decode()
            if planted := self.taker.answers.get(verb):
                self.say(planted)
            elif verb == "EHLO":
                self.say("250-here\r\n250-STARTTLS\r\n250 AUTH PLAIN" if self.taker.certificate else "250 here")
            elif verb == "STARTTLS":
                self.say("220 go on")
                self._encrypt()
            elif verb == "AUTH":
                self._log_in(line)
            elif verb == "DATA":
                self._take()
            elif verb == "QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 ok")

    def _log_in(self, line: bytes) -> None:
        _, user, password = base64.b64decode(line.split()[2]).split(b"\0")
        self.taker.logins.append(user.decode())
        self.say("235 welcome" if password.decode() == self.taker.password else "535 no")

    def _take(self) -> None:
        self.say("354 go on")
        read: list[bytes] = []
        while (line := self.lines.readline()) != b".\r\n":
            read.append(line.removeprefix(b"."))
        mail = message_from_bytes(b"".join(read), policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.taker.got.append(mail)
        self.taker.were_encrypted.append(self.is_encrypted)
        self.say("250 taken")

    def _encrypt(self) -> None:
        self.socket = self.taker.context().wrap_socket(self.socket, server_side=True)
        self.lines.close()
        self.lines = self.socket.makefile("rb")
        self.is_encrypted = True

    def say(self, text: str) -> None:
        self.socket.sendall(f"{text}\r\n".encode())


def make_certificate(folder: Path) -> Path:
    """Writes a self-signed certificate for 127.0.0.1 and its key to one file."""
    file = folder / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-keyout", str(file), "-out", str(folder / "public.pem"), "-days", "2"),
            *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    file.write_text(file.read_text() + (folder / "public.pem").read_text())
    return file
