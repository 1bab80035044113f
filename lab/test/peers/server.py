"""The server of "bench-peers -server".

It answers /metrics with the real prometheus_client under uvicorn, as the API server of vLLM
does, and counts what it answers. Its registry has real counters, gauges and histograms with
the series and values of a body of the harness; a few of them grow five times a second.

There are two forms, because vLLM has had two (--form):

  mount  make_asgi_app in the event loop, which negotiates OpenMetrics and gzip. This is
         /metrics of vLLM 0.4.2 to 0.8.4, and /metrics/ of all later versions.
  route  the text in a worker thread, whatever the client asks for. This is /metrics of vLLM
         from 0.8.5 on, where prometheus-fastapi-instrumentator answers it. The instrumentator
         and FastAPI themselves are not here: Debian has no package of the instrumentator.

With --direct it serves nothing, and prints how long prometheus_client and gzip take.
"""

import argparse
import asyncio
import gzip
import inspect
import json
import math
import platform
import statistics
import time
import zlib

import prometheus_client
import uvicorn
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary, generate_latest, make_asgi_app
from prometheus_client.core import CounterMetricFamily
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.parser import text_string_to_metric_families

CREATED = "_created"
GROWTH_INTERVAL = 0.2  # seconds


class CounterFamily:
    """A counter without the time of its creation, as prometheus_client's collectors of the
    process and of the garbage collection yield them."""

    def __init__(self, family):
        self.family = family

    def collect(self):
        out = CounterMetricFamily(self.family.name, self.family.documentation)
        for sample in self.family.samples:
            out.add_sample(sample.name, sample.labels, sample.value)
        yield out


def build(text):
    """Returns a registry with the series of a body, and what is called to let it grow."""
    families = list(text_string_to_metric_families(text))
    names = {f.name for f in families}
    created = {f.name[: -len(CREATED)]: f for f in families if f.name.endswith(CREATED) and f.name[: -len(CREATED)] in names}
    registry = CollectorRegistry()
    growth = []
    for family in families:
        if family.name.endswith(CREATED) and family.name[: -len(CREATED)] in created:
            continue
        add(registry, family, created.get(family.name), growth)
    return registry, growth


def key(labels):
    return tuple(sorted((k, v) for k, v in labels.items() if k != "le"))


def add(registry, family, created, growth):
    """Registers one family with its values."""
    if family.type == "counter" and created is None:
        registry.register(CounterFamily(family))
        return
    kind = {"counter": Counter, "gauge": Gauge, "histogram": Histogram, "summary": Summary}[family.type]
    series = {}
    for sample in family.samples:
        series.setdefault(key(sample.labels), []).append(sample)
    options = {}
    if kind is Histogram:
        first = next(iter(series.values()))
        options["buckets"] = [float(s.labels["le"]) for s in first if "le" in s.labels]
    label_names = [k for k, _ in next(iter(series), ())]
    metric = kind(family.name, family.documentation, label_names, registry=registry, **options)
    times = {key(s.labels): s.value for s in created.samples} if created else {}
    for labels, samples in series.items():
        child = metric.labels(**dict(labels)) if labels else metric
        fill(kind, family.name, child, samples, growth)
        if labels in times:
            child._created = times[labels]


def fill(kind, name, child, samples, growth):
    """Sets one series. The client has no public way to set a counter or a histogram."""
    if kind is Gauge:
        child.set(samples[0].value)
        return
    if kind is Counter:
        value = samples[0].value
        child._value.set(value)
        if value:
            growth.append((child.inc, math.ceil(value / 100)))
        return
    count = total = 0
    below = 0
    buckets = iter(child._buckets) if kind is Histogram else None
    for sample in samples:
        if sample.name == name + "_bucket":
            next(buckets).set(sample.value - below)
            below = sample.value
        elif sample.name == name + "_sum":
            child._sum.set(sample.value)
            total = sample.value
        elif sample.name == name + "_count":
            count = sample.value
            if kind is Summary:
                child._count.set(count)
    if count:
        growth.append((child.observe, total / count))


def check(registry, text):
    """Fails if the registry does not give the body that it was built from."""

    def content(body):
        out = []
        for family in text_string_to_metric_families(body):
            samples = [(s.name, tuple(sorted(s.labels.items())), s.value) for s in family.samples]
            out.append((family.name, family.type, family.documentation, samples))
        return out

    want, got = content(text), content(generate_latest(registry).decode())
    for a, b in zip(want, got):
        if a != b:
            raise SystemExit(f"the registry does not give the body: {a} became {b}")
    if len(want) != len(got):
        raise SystemExit(f"the registry gives {len(got)} families, and the body has {len(want)}")


def versions():
    return {
        "python": platform.python_version(),
        "prometheus_client": version("prometheus_client"),
        "uvicorn": uvicorn.__version__,
        "zlib": zlib.ZLIB_RUNTIME_VERSION,
        "gzip_level": inspect.signature(gzip.compress).parameters["compresslevel"].default,
    }


def version(package):
    from importlib import metadata

    return metadata.version(package)


class App:
    """Serves the registry and counts what is sent."""

    def __init__(self, registry, form):
        self.registry = registry
        self.answer = make_asgi_app(registry) if form == "mount" else self.route
        self.scrapes = self.bytes = 0
        self.kinds = {}

    async def route(self, scope, receive, send):
        body = await asyncio.to_thread(generate_latest, self.registry)
        await respond(send, 200, prometheus_client.CONTENT_TYPE_LATEST, body)

    async def __call__(self, scope, receive, send):
        path = scope["path"]
        if path == "/counts":
            counts = {
                "scrapes": self.scrapes,
                "bytes": self.bytes,
                "kinds": self.kinds,
                "cpu_seconds": time.process_time(),
                "versions": versions(),
            }
            await respond(send, 200, "application/json", json.dumps(counts).encode())
        elif path == "/version":
            await respond(send, 200, "application/json", b'{"version":"0.20.0"}')
        elif path == "/metrics":
            await self.answer(scope, receive, self.counted(send))
        else:
            await respond(send, 404, "text/plain", b"Not Found")

    def counted(self, send):
        async def counting(message):
            if message["type"] == "http.response.start":
                headers = {k.lower(): v for k, v in message["headers"]}
                kind = headers[b"content-type"].split(b";")[0].decode()
                if b"content-encoding" in headers:
                    kind += ", " + headers[b"content-encoding"].decode()
                self.kinds[kind] = self.kinds.get(kind, 0) + 1
                self.scrapes += 1
            else:
                self.bytes += len(message["body"])
            await send(message)

        return counting


async def respond(send, status, content_type, body):
    headers = [(b"content-length", str(len(body)).encode()), (b"content-type", content_type.encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def grow(growth):
    while True:
        await asyncio.sleep(GROWTH_INTERVAL)
        for call, amount in growth:
            call(amount)


async def serve(args, registry, growth):
    config = uvicorn.Config(
        App(registry, args.form), host="127.0.0.1", port=args.port, lifespan="off", log_level="warning", access_log=False
    )
    growing = asyncio.ensure_future(grow(growth))
    await uvicorn.Server(config).serve()
    growing.cancel()


def direct(registry, growth, repetitions=60, pause=0.05):
    """Measures the parts of an answer in turns, with a pause before each as between scrapes."""
    took = {}

    def measured(name, call):
        time.sleep(pause)
        begin = time.perf_counter()
        out = call()
        took.setdefault(name, []).append(1000 * (time.perf_counter() - begin))
        return out

    for _ in range(repetitions):
        for call, amount in growth:
            call(amount)
        text = measured("text", lambda: generate_latest(registry))
        packed = measured("text_gzip", lambda: gzip.compress(text))
        om_text = measured("openmetrics", lambda: openmetrics.generate_latest(registry))
        om_packed = measured("openmetrics_gzip", lambda: gzip.compress(om_text))
    out = {name: {"median_ms": statistics.median(v), "min_ms": min(v), "max_ms": max(v)} for name, v in took.items()}
    for name, body in (("text", text), ("text_gzip", packed), ("openmetrics", om_text), ("openmetrics_gzip", om_packed)):
        out[name]["bytes"] = len(body)
    print(json.dumps({"parts": out, "versions": versions()}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--body", required=True, help="file with the body")
    parser.add_argument("--port", type=int, help="port on 127.0.0.1")
    parser.add_argument("--form", choices=["mount", "route"], default="mount")
    parser.add_argument("--direct", action="store_true")
    args = parser.parse_args()
    with open(args.body, encoding="utf-8") as file:
        text = file.read()
    registry, growth = build(text)
    check(registry, text)
    if args.direct:
        direct(registry, growth)
    else:
        asyncio.run(serve(args, registry, growth))


if __name__ == "__main__":
    main()
