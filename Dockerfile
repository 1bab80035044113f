# The distribution as an image with nothing in it but the collector, vllmctl, the certificate
# authorities of the public internet, and the licences:
#
#   docker build -t registry.example.com/otelcol-vllm:0.2.0 .
#
# With "--target tiers" it has the collector of "make build-tiers", which can send by load
# balancing and through Kafka, with "--target full" that of "make build-full", which signs requests to AWS.
#
# Needs BuildKit (Docker's default) or podman, for the cache mounts.

# Go's Debian image, because it has make, which its Alpine image has not. The digest names one
# image for all time, where a tag moves. It is the one by which public repositories pin this
# tag; this project's authors could not pull it where they work. Check it, and find the
# next one, with:
#
#   docker buildx imagetools inspect golang:1.26.9-bookworm
#
# "Digest:" must be this one (the index, not one platform's manifest). Another base, such as a
# mirror's, is "--build-arg GO_IMAGE=..."; another source of Go modules is "--build-arg GOPROXY=...".
ARG GO_IMAGE=golang:1.26.9-bookworm@sha256:d9c68c2c51161e12fd77e4c6320687c9cd86e1af1e3ad6e6cd63ff970641453c

# Always the platform of the machine that builds: Go compiles for the other one, which is many
# times faster than to emulate it.
FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
WORKDIR /src
# .dockerignore lets in only what the build reads.
COPY . .
# The caches make a second build take seconds. They are not part of any image. The tools are
# built before the platform is known, so that both platforms share them.
ENV GOCACHE=/go/cache
# Not set unless they are given.
ARG GOPROXY
ARG GOSUMDB
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/go/cache \
    make release-tools
ARG TARGETOS
ARG TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/go/cache \
    make build licences

# What all images have.
FROM scratch AS common
# Without these, no backend behind a public certificate could be reached.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/LICENSE /src/NOTICE /licenses/
COPY --from=build /src/bin/vllmctl /vllmctl
# "make release-image" sets both.
ARG VERSION=unreleased
ARG REVISION=unknown
LABEL org.opencontainers.image.title="otelcol-vllm" \
      org.opencontainers.image.source="https://github.com/otelcol-vllm/otelcol-vllm" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
# A number and not a name, so that Kubernetes can see that it is not root. The
# manifests in examples/kubernetes name the same one.
USER 10001:10001
ENTRYPOINT ["/otelcol-vllm"]
CMD ["--config=/etc/otelcol-vllm/collector.yaml"]

# Only built with "--target tiers".
FROM build AS build-tiers
ARG TARGETOS
ARG TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/go/cache \
    make build-tiers licences COLLECTOR=otelcol-vllm-tiers LICENCES=build/licences-tiers

FROM common AS tiers
COPY --from=build-tiers /src/build/licences-tiers /licenses
COPY --from=build-tiers /src/bin/otelcol-vllm-tiers /otelcol-vllm
LABEL org.opencontainers.image.description="OpenTelemetry Collector for vLLM, with load balancing and Kafka"

# Only built with "--target full".
FROM build AS build-full
ARG TARGETOS
ARG TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/go/cache \
    make build-full licences COLLECTOR=otelcol-vllm-full LICENCES=build/licences-full

FROM common AS full
COPY --from=build-full /src/build/licences-full /licenses
COPY --from=build-full /src/bin/otelcol-vllm-full /otelcol-vllm
LABEL org.opencontainers.image.description="OpenTelemetry Collector for vLLM, with components for Kubernetes and AWS"

FROM common
COPY --from=build /src/build/licences /licenses
COPY --from=build /src/bin/otelcol-vllm /otelcol-vllm
LABEL org.opencontainers.image.description="OpenTelemetry Collector for vLLM"
