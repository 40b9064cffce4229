# A slim image that serves one model:
#   docker build -t accord .
#   docker run --rm -p 8000:8000 -v "$PWD/model.accord:/model.accord:ro" \
#     -e ACCORD_API_KEY --read-only --cap-drop ALL accord
# It writes nothing, and runs as any user (--user 1234).

FROM python:3.11-slim AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
# The constraint keeps torch small.
RUN python -m venv /accord \
 && /accord/bin/pip install --no-cache-dir --no-compile --constraint constraints.txt '.[serve]'

FROM python:3.11-slim
COPY --from=build /accord /accord
# matplotlib and others look for a home that can be written to; none is needed to serve.
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PATH=/accord/bin:$PATH
USER 65534
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/ready')"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["accord", "serve"]
CMD ["/model.accord", "--host", "0.0.0.0"]
