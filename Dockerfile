# The distribution as an image with nothing in it but the collector, vllmctl and the
# certificate authorities of the public internet:
#
#   docker build -t registry.example.com/otelcol-vllm:0.2.0 .
#
# With "--target tiers" it has the collector of "make build-tiers", which can send by load
# balancing and through Kafka.
#
# Needs BuildKit (Docker's default) or podman, for the cache mounts.

# Go's Debian image, because it has make, which its Alpine image has not.
FROM golang:1.26-bookworm AS build
WORKDIR /src
# .dockerignore lets in only what the build reads.
COPY . .
# The caches make a second build take seconds. They are not part of any image.
ENV GOCACHE=/go/cache
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/go/cache \
    make build

# Only built with "--target tiers".
FROM build AS build-tiers
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/go/cache \
    make build-tiers

FROM scratch AS tiers
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build-tiers /src/bin/otelcol-vllm-tiers /otelcol-vllm
COPY --from=build /src/bin/vllmctl /vllmctl
USER 10001:10001
ENTRYPOINT ["/otelcol-vllm"]
CMD ["--config=/etc/otelcol-vllm/collector.yaml"]

FROM scratch
# Without these, no backend behind a public certificate could be reached.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/bin/otelcol-vllm /otelcol-vllm
COPY --from=build /src/bin/vllmctl /vllmctl
# A number and not a name, so that Kubernetes can see that it is not root. The
# manifests in examples/kubernetes name the same one.
USER 10001:10001
ENTRYPOINT ["/otelcol-vllm"]
CMD ["--config=/etc/otelcol-vllm/collector.yaml"]
