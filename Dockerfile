# The command `pawl`, for workers and schedulers. Your agents are mounted, or copied by an image made from this one, to /app.
FROM python:3.12-slim

# A forgotten PAWL_REDIS_URL must not lose runs in a server that ends with its container.
ENV PAWL_EMBEDDED=never \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

COPY pyproject.toml constraints.txt README.md LICENSE /src/
COPY agent /src/agent
COPY scheduler /src/scheduler
COPY worker /src/worker
RUN pip install --no-cache-dir --constraint /src/constraints.txt /src && rm -r /src

RUN useradd --create-home pawl
USER pawl
WORKDIR /app

# No shell in between: SIGTERM reaches pawl, which drains.
ENTRYPOINT ["pawl"]
CMD ["--help"]
