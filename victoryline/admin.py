"""Users and groups in the admin, with unfold's forms."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

admin.site.unregister(User)
admin.site.unregister(Group)
admin.site.unregister((TOTPDevice, StaticDevice))  # by `manage.py second_factor`: their pages would show the secrets


@admin.register(User)
class ConsoleUserAdmin(UserAdmin[User], ModelAdmin):  # type: ignore[misc]  # unfold publishes no types
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Only a superuser makes superusers; others give permissions by groups."""
        fields = super().get_readonly_fields(request, obj)
        return fields if _is_superuser(request) else (*fields, "is_superuser", "user_permissions")

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Also guards the form that sets a password."""
        is_above = obj is not None and obj.is_superuser and not _is_superuser(request)
        return not is_above and bool(super().has_change_permission(request, obj))

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """The audit names them: make them inactive instead."""
        return False


@admin.register(Group)
class ConsoleGroupAdmin(GroupAdmin, ModelAdmin):  # type: ignore[misc]  # unfold publishes no types
    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        """Its members would lose their permissions without a trace: remove them from it instead."""
        return False


def _is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))
