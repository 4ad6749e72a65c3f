# txl-server with the shipped model, on the CPU. The same setup script as on a
# developer's machine.
#
#   docker build -t txl .
#   docker run --read-only -p 127.0.0.1:50051:50051 txl
#   docker run --read-only -p 127.0.0.1:50051:50051 -v ./my-model:/model:ro \
#     -e TXL_WEIGHTS=int8 txl
#
# Every flag F of txl-server is the variable TXL_F, or an argument. podman
# builds it too. Build arguments: DEBIAN, the base image's tag; TXL_JOBS,
# compilers at once (default: as many as cores); REVISION and VERSION for the
# labels; PIP_INDEX_URL, PIP_FIND_LINKS and PIP_CERT as pip knows them, where its
# packages come from a mirror.
ARG DEBIAN=12
FROM debian:${DEBIAN} AS build
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends ca-certificates
WORKDIR /src
COPY deploy/setup.sh deploy/setup.sh
ARG PIP_INDEX_URL PIP_FIND_LINKS PIP_CERT
RUN deploy/setup.sh
COPY . .
ARG TXL_JOBS=
ENV CCACHE_DIR=/ccache
RUN --mount=type=cache,target=/ccache \
    cmake --preset release -DTXL_TESTS=OFF \
 && ninja -C build ${TXL_JOBS:+-j$TXL_JOBS} txl-server txl txl-model \
 && strip build/bin/* \
 && mkdir -p /opt/txl/bin /opt/txl/lib \
 && cp build/bin/txl-server build/bin/txl build/bin/txl-model /opt/txl/bin/ \
 && cd .deps/venv/lib/python3*/site-packages/torch/lib \
 && cp libtorch.so libtorch_cpu.so libc10.so libgomp.so.1 /opt/txl/lib/

FROM debian:${DEBIAN}-slim
ENV PATH=/opt/txl/bin:$PATH LD_LIBRARY_PATH=/opt/txl/lib
COPY --from=build /opt/txl /opt/txl
COPY --from=build /src/models/shakespeare /model
# The last command fails where a library is missing from this list.
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends \
      libgrpc++1.51 libprotobuf32 libprotobuf-lite32 libabsl20220623 \
      libtomlplusplus3 libutf8proc2 libedit2 libssl3 libhwy1 libisal2 \
      libpcre2-8-0 zlib1g libprometheus-cpp-pull1.0 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --no-create-home txl \
 && ! ldd /opt/txl/bin/* | grep 'not found'
ARG REVISION= VERSION=
LABEL org.opencontainers.image.title="txl-server" \
      org.opencontainers.image.description="Serves Transformer-XL language models over gRPC" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.version="$VERSION"
# Variables, not arguments, so that variables can change them.
ENV TXL_MODEL=/model TXL_LISTEN=0.0.0.0:50051
USER 10001:10001
EXPOSE 50051
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD ["txl", "status", "--check", "--timeout", "3"]
# SIGTERM drains: running turns have TXL_DRAIN_TIMEOUT, 30 s. Docker's own limit
# is 10 s: docker stop -t 35.
STOPSIGNAL SIGTERM
ENTRYPOINT ["txl-server"]
