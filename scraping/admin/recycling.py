"""POST /admin/recycle: every worker's browser, or one worker's, is replaced by a fresh one."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from scraping.recovery import worker_commands
from victoryline.lib.admin import username

MAY = "scraping.add_workerorder"


@never_cache
@require_POST
def recycle(request: HttpRequest) -> HttpResponse:
    """For staff, with their session: `worker_id` names one worker, `reason` goes into the audit."""
    if not request.user.is_staff or not request.user.has_perm(MAY):
        raise PermissionDenied
    wanted = request.POST.get("worker_id", "")
    reason = request.POST.get("reason", "").strip() or "asked for in the console"
    asked = worker_commands.recycle(wanted, reason=reason, actor=username(request), now=timezone.now())
    if not asked.workers:
        detail = f"There is no worker {wanted} at work." if wanted else "No worker is at work: there is no browser."
        return JsonResponse({"status": "nothing to do", "detail": detail}, status=404 if wanted else 409)
    return JsonResponse({"status": "asked", "workers": asked.workers, "orders": asked.orders}, status=202)
