"""The base class of all API views (JSON, chunked bodies, rate limit), conditional requests and query parameters."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple

from cachetools import LRUCache
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.utils.http import parse_etags
from rest_framework import serializers
from rest_framework.exceptions import APIException, AuthenticationFailed, NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from victoryline.lib import availability
from victoryline.lib.http.compression import GZIP_ETAG
from victoryline.lib.http.problems import NO_SUCH_ADDRESS, BadParameter, DatabaseAway
from victoryline.lib.http.renderers import OrjsonRenderer

MakeBody = Callable[[], dict[str, Any] | bytes]

RENDERER = OrjsonRenderer()
MAX_CHECKED_QUERIES, MAX_CHECKED_LENGTH = 2_000, 300
# Query strings that were checked before: checking takes longer than the answer does.
_checked_queries: LRUCache[tuple[type, str], dict[str, Any]] = LRUCache(MAX_CHECKED_QUERIES)
_checked_lock = threading.Lock()


class ApiRequest(Request):
    """A request whose body may be chunked: Django and REST framework would ignore a body without Content-Length."""

    def _load_stream(self) -> None:
        meta = self._request.META
        if meta.get("CONTENT_LENGTH") or not meta.get("wsgi.input_terminated") or "HTTP_TRANSFER_ENCODING" not in meta:
            super()._load_stream()  # type: ignore[misc]  # the stubs leave it out
        else:
            self._stream = meta["wsgi.input"]


class _Parts(NamedTuple):
    parsers: list[Any]
    authenticators: list[Any]
    throttles: list[Any]
    negotiator: Any


@cache
def _parts(view: type[APIView]) -> _Parts:
    """Returns the parsers, authenticators etc. of a view class. They hold no request state, so requests share them."""
    one = view()
    return _Parts(one.get_parsers(), one.get_authenticators(), one.get_throttles(), one.get_content_negotiator())


class ApiView(APIView):
    """`required_scope`: the scope that the client's key must have (empty: any key); the permission class reads it.

    `needs_database`: requests are refused at once while the database is known to be unreachable. `costs_quota`: False
    for requests that do not count against the rate limit, up to a high limit. Nor do requests whose answer the client
    already has, at views that can find that out (ConditionalView).
    """

    required_scope = "read"
    needs_database = True
    costs_quota = True

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        parts = _parts(type(self))  # type: ignore[arg-type]  # a class is hashable
        return ApiRequest(
            request,
            parsers=parts.parsers,
            authenticators=parts.authenticators,
            negotiator=parts.negotiator,
            parser_context={"view": self, "args": self.args, "kwargs": self.kwargs},
        )

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """As upstream, without content negotiation and versioning: there is one format and one version."""
        self.format_kwarg = None
        request.accepted_renderer, request.accepted_media_type = RENDERER, RENDERER.media_type
        request.version = request.versioning_scheme = None
        self.perform_authentication(request)
        self.check_permissions(request)
        if self.needs_database and availability.database.is_away():
            raise DatabaseAway

    def check_permissions(self, request: Request) -> None:
        """Checks the rate limit first: a refusal for a missing scope counts too, and shows the remaining quota."""
        for throttle in _parts(type(self)).throttles:  # type: ignore[arg-type]  # a class is hashable
            throttle.allow_request(request, self)  # raises
        if hasattr(self, (request.method or "").lower()):  # an unknown method is a 405 with any scope
            super().check_permissions(request)

    def options(self, request: Request, *args: Any, **kwargs: Any) -> Response:  # type: ignore[override]  # as upstream
        """Answers with `Allow` only; everything else is at /api/schema."""
        return Response(status=204)

    @property
    def default_response_headers(self) -> dict[str, str]:
        """Upstream sends `Allow` with every answer; here finalize_response does where it is useful."""
        return {}

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        finished = super().finalize_response(request, response, *args, **kwargs)
        headers = finished.headers
        if finished.status_code == 405 or request.method == "OPTIONS":
            headers["Allow"] = ", ".join(self.allowed_methods)
        if "Vary" in headers:
            patch_vary_headers(finished, ["Authorization", "Accept-Encoding"])
        else:
            headers["Vary"] = "Authorization, Accept-Encoding"
        return finished


class ConditionalView(ApiView):
    """A read with an ETag. Subclasses return headers and a function that makes the body from `prepare`."""

    needs_database = False
    _prepared: tuple[dict[str, str], MakeBody] | None = None

    def prepare(self, request: Request) -> tuple[dict[str, str], MakeBody]:
        raise NotImplementedError

    def is_unchanged(self, request: Request) -> bool:
        """Returns whether the client has the current answer; called before the request is counted."""
        try:
            return "If-None-Match" in request.headers and bool(has_etag(request, self._prepare(request)[0].get("ETag")))
        except APIException:
            return False  # the view raises it again, and the request counts

    def get(self, request: Request, **_: Any) -> HttpResponseBase:
        headers, make_body = self._prepare(request)
        if unchanged := not_modified(request, headers):  # the most frequent answer, without a renderer
            return unchanged
        body = make_body()
        if isinstance(body, bytes):
            return HttpResponse(body, headers=headers, content_type="application/json")
        return Response(body, headers=headers)

    def _prepare(self, request: Request) -> tuple[dict[str, str], MakeBody]:
        if self._prepared is None:
            self._prepared = self.prepare(request)
        return self._prepared


def not_modified(request: HttpRequest | Request, headers: Mapping[str, str]) -> HttpResponse | None:
    """Returns a 304 with these headers if the client has the version that their ETag names, else None."""
    known = has_etag(request, headers.get("ETag"))
    if not known:
        return None
    response = HttpResponse(status=304, headers={**headers, "ETag": known})
    del response.headers["Content-Type"]
    return response


def has_etag(request: HttpRequest | Request, etag: str | None) -> str:
    """Returns the form in which If-None-Match names `etag`: plain or of the compressed body; empty if it does not."""
    offered = request.headers.get("If-None-Match", "")
    if not offered or not etag:
        return ""
    known = {each.removeprefix("W/") for each in parse_etags(offered)}
    forms = (etag, etag[:-1] + GZIP_ETAG)
    return next((form for form in forms if form in known), etag if "*" in known else "")


def read_params(kind: type[serializers.Serializer[None]], request: Request) -> dict[str, Any]:
    """Returns the checked parameters of the request; raises BadParameter for the first that cannot be used."""
    query = kind, request.META.get("QUERY_STRING", "")
    with _checked_lock:
        known = _checked_queries.get(query)
    if known is None:
        known = _check_params(kind, request)
        if len(query[1]) <= MAX_CHECKED_LENGTH:
            with _checked_lock:
                _checked_queries[query] = known
    return known.copy()


def _check_params(kind: type[serializers.Serializer[None]], request: Request) -> dict[str, Any]:
    # A plain dict: an empty value of a QueryDict would count as a missing parameter.
    given = kind(data=request.query_params.dict())
    known = list(given.fields)
    for name, values in request.query_params.lists():
        if name not in known:  # a misspelled filter must not be ignored
            near = get_close_matches(name.lower(), known, n=1)
            hint = f" Did you mean `{near[0]}`?" if near else ""
            raise BadParameter(
                name[:100], f"`{name[:100]}` is not a parameter here.{hint} There are: {', '.join(known)}."
            )
        if len(values) > 1:
            raise BadParameter(
                name,
                f"`{name}` is there {len(values)} times: say it once, with commas where it takes several words.",
            )
    if not given.is_valid():
        name, messages = next(iter(given.errors.items()))
        reason = " ".join(str(message) for message in messages)
        field = given.fields.get(name)
        if isinstance(field, serializers.ChoiceField):
            reason += f" Use one of: {', '.join(field.choices)}."
        if isinstance(field, serializers.DateTimeField) and " " in request.query_params[name]:
            reason += " A plus sign is written %2B in an address."
        raise BadParameter(str(name), f"`{name}` can't be used: {reason}")
    checked: dict[str, Any] = given.validated_data
    return checked


def idempotency_key(request: Request, longest: int) -> str:
    key = request.headers.get("Idempotency-Key", "")
    if len(key) > longest or not key.isprintable():
        reason = f"`Idempotency-Key` can't be used: it has up to {longest} printable characters."
        raise BadParameter("Idempotency-Key", reason)
    return key


class UnknownPathView(ApiView):
    """Answers 404 for unknown paths below the API prefixes, counted and logged like any other answer."""

    needs_database = False
    permission_classes = ()
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """For every method. The token only decides whose quota is used; without a valid one it is a 404 too."""
        with suppress(AuthenticationFailed, DatabaseAway):
            super().initial(request, *args, **kwargs)
        raise NotFound(NO_SUCH_ADDRESS)
