"""Users and groups in the admin, with unfold's forms."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class ConsoleUserAdmin(UserAdmin[User], ModelAdmin):  # type: ignore[misc]  # unfold publishes no types
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


@admin.register(Group)
class ConsoleGroupAdmin(GroupAdmin, ModelAdmin):  # type: ignore[misc]  # unfold publishes no types
    pass
