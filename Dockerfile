FROM python:3.13-slim AS build

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/loopwarden
COPY requirements.lock /src/
RUN /opt/loopwarden/bin/pip install --require-hashes -r /src/requirements.lock
COPY pyproject.toml README.md LICENSE /src/
COPY bot /src/bot
COPY jobs /src/jobs
RUN /opt/loopwarden/bin/pip install --no-deps /src

FROM python:3.13-slim

RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin loopwarden \
    # For whichever user the container is run as; the database itself is made readable for that user alone.
    && install -d -m 1777 /data
COPY --from=build /opt/loopwarden /opt/loopwarden
ENV PATH=/opt/loopwarden/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    LOOPWARDEN_DATA_DIR=/data \
    LOOPWARDEN_WATCHLIST=/etc/loopwarden/loopwarden.toml
USER loopwarden
WORKDIR /data
VOLUME /data
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=60s --timeout=10s --start-period=60s --retries=3 CMD ["loopwarden", "health"]
ENTRYPOINT ["loopwarden"]
CMD ["run"]
