"""The optional second factor of staff: one-time codes (TOTP) by django-otp, on with STAFF_SECOND_FACTOR.

A login without a code counts as no staff: the admin, its endpoints and what the status page shows to staff all ask the
same column. `manage.py second_factor` gives a user a device and recovery codes, and takes them away.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django import forms
from django.contrib.auth.signals import user_login_failed
from django.http import HttpRequest, HttpResponseBase
from django.utils.functional import SimpleLazyObject
from django_otp.forms import OTPAuthenticationFormMixin
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice
from unfold.forms import AuthenticationForm
from unfold.widgets import UnfoldAdminTextInputWidget


class SecondFactorMiddleware:
    """Stands behind OTPMiddleware, which knows whether the session has given a code."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request.user = SimpleLazyObject(partial(_checked, request.user))  # type: ignore[assignment]
        return self.get_response(request)


def _checked(user: Any) -> Any:
    if user.is_authenticated and not user.is_verified():
        user.is_staff = False  # for this request; nothing saves it
    return user


class LoginForm(OTPAuthenticationFormMixin, AuthenticationForm):  # type: ignore[misc]  # untyped upstream
    otp_token = forms.CharField(
        label="Code",
        required=False,
        help_text="Of your authenticator app, or a recovery code.",
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "one-time-code", "form": "login-form"}),
    )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean()
        device_type = TOTPDevice if cleaned.get("otp_token", "").isdigit() else StaticDevice
        device = device_type.objects.devices_for_user(self.get_user(), confirmed=True).first()
        cleaned["otp_device"] = device.persistent_id if device else ""
        try:
            self.clean_otp(self.get_user())
        except forms.ValidationError:  # counts for the lock like a wrong password
            user_login_failed.send(__name__, credentials={"username": cleaned["username"]}, request=self.request)
            raise
        return cleaned

    def _update_form(self, user: Any) -> None:
        """Leaves the form as it is; django-otp would send the password back in the page."""
