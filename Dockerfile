# One image for web, scheduler and worker; docker-compose.yml sets the command of each container.
FROM python:3.11-slim-bookworm

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1

# tini is process 1: it reaps orphaned Chromium processes and forwards signals.
RUN apt-get update \
    && apt-get install -y --no-install-recommends chromium fonts-liberation tini \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /app
COPY pyproject.toml constraints.txt ./
RUN python -c "import tomllib; print('\n'.join(tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies']))" > run.txt \
    && pip install -r run.txt -c constraints.txt \
    && rm run.txt

COPY . .
RUN useradd --system --create-home --uid 10001 victoryline \
    && mkdir -p /data/storage /data/spool \
    && VAR_DIR=/tmp/build python manage.py collectstatic --noinput \
    && rm -rf /tmp/build \
    && chown -R victoryline:victoryline /data

USER victoryline
ENV CHROMIUM_PATH=/usr/bin/chromium \
    VAR_DIR=/data \
    HOST=0.0.0.0 \
    DEMO=false
VOLUME /data
EXPOSE 8000 9090
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health/live', timeout=2)"]
ENTRYPOINT ["tini", "--"]
CMD ["python", "-m", "granian", "--interface", "wsgi", "victoryline.wsgi:application", "--host", "0.0.0.0", "--port", "8000", "--workers", "2", "--blocking-threads", "8", "--workers-kill-timeout", "5"]
