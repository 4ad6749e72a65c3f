# txl-server with the shipped model, on the CPU. The same setup script as on a
# developer's machine.
#
#   docker build -t txl .
#   docker run --read-only -p 127.0.0.1:50051:50051 -p 127.0.0.1:8080:8080 txl
#
# A container's own addresses are all beyond loopback, so the image says
# TXL_INSECURE=true: whoever publishes a port to other machines gives
# TXL_TLS_CERT and TXL_TLS_KEY (docs/security.md), and TXL_INSECURE=false.
#
#   docker run --read-only -p 127.0.0.1:50051:50051 -v ./my-model:/model:ro \
#     -e TXL_WEIGHTS=int8 txl
#
# With sessions that outlive the container, in a volume at /data, which is the
# user's 10001:
#
#   docker run --read-only -p 127.0.0.1:50051:50051 -v txl-data:/data \
#     -e TXL_DATA_DIR=/data txl
#
# With CUDA, from images that hold its compiler and fit each other
# (docs/deploying.md):
#
#   docker build --target cuda -t txl-cuda .
#   docker run --gpus all --read-only -p 127.0.0.1:50051:50051 txl-cuda
#
# Every flag F of txl-server is the variable TXL_F, or an argument. podman
# builds it too. Build arguments: DEBIAN, the base images' tag; DEBIAN_BUILD and
# DEBIAN_RUN, the images themselves, to pin them (NAME@sha256:...); CUDA_BUILD
# and CUDA_RUN, images of one Debian or Ubuntu release, the first with nvcc;
# TXL_JOBS, compilers at once (default: as many as cores); REVISION and VERSION
# for the labels; PIP_INDEX_URL, PIP_FIND_LINKS and PIP_CERT as pip knows them,
# where its packages come from a mirror.
ARG DEBIAN=12
ARG DEBIAN_BUILD=debian:${DEBIAN}
ARG DEBIAN_RUN=debian:${DEBIAN}-slim
ARG CUDA_BUILD=nvidia/cuda:13.0.2-devel-ubuntu24.04
ARG CUDA_RUN=ubuntu:24.04

FROM ${CUDA_BUILD} AS build-cuda
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends ca-certificates
WORKDIR /src
COPY deploy/setup.sh deploy/progress.sh deploy/
ARG PIP_INDEX_URL PIP_FIND_LINKS PIP_CERT
RUN deploy/setup.sh --cuda
COPY . .
ARG TXL_JOBS=
ENV CCACHE_DIR=/ccache
RUN --mount=type=cache,target=/ccache \
    cmake --preset release -DTXL_TESTS=OFF -DTXL_OLD_CPUS=ON -DTXL_CUDA=ON \
 && ninja -C build ${TXL_JOBS:+-j$TXL_JOBS} txl-server txl txl-model \
 && strip build/bin/*
# Every library that the programs load but the C and C++ libraries themselves;
# those of CUDA load others by name.
RUN mkdir -p /opt/txl/bin /opt/txl/lib \
 && cp build/bin/txl-server build/bin/txl build/bin/txl-model /opt/txl/bin/ \
 && ldd /opt/txl/bin/* | sed -n 's|.* => \(/[^ ]*\) .*|\1|p' | sort -u \
  | grep -vE '/lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s)\.so' \
  | xargs cp -Lt /opt/txl/lib \
 && cp -Ln .deps/venv/lib/python3*/site-packages/nvidia/*/lib/*.so.* \
      .deps/venv/lib/python3*/site-packages/torch/lib/libcaffe2_nvrtc.so \
      .deps/venv/lib/python3*/site-packages/torch/lib/libtorch_cuda_linalg.so \
      /opt/txl/lib/

# What is missing but the driver, which comes with `--gpus`, ends the build.
FROM ${CUDA_RUN} AS cuda
ENV PATH=/opt/txl/bin:$PATH LD_LIBRARY_PATH=/opt/txl/lib \
    NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
COPY --from=build-cuda /opt/txl /opt/txl
COPY --from=build-cuda /src/models/shakespeare /model
RUN useradd --system --uid 10001 --no-create-home txl \
 && install -d -o 10001 -g 10001 -m 700 /data \
 && ! ldd /opt/txl/bin/* | grep 'not found' | grep -v libcuda.so.1
ENV TXL_MODEL=/model TXL_LISTEN=0.0.0.0:50051 TXL_HTTP_LISTEN=0.0.0.0:8080 \
    TXL_INSECURE=true
USER 10001:10001
EXPOSE 50051 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s \
  CMD ["txl", "status", "--check", "--timeout", "3"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["txl-server"]

FROM ${DEBIAN_BUILD} AS build
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends ca-certificates
WORKDIR /src
COPY deploy/setup.sh deploy/progress.sh deploy/
ARG PIP_INDEX_URL PIP_FIND_LINKS PIP_CERT
RUN deploy/setup.sh
COPY . .
ARG TXL_JOBS=
ENV CCACHE_DIR=/ccache
RUN --mount=type=cache,target=/ccache \
    cmake --preset release -DTXL_TESTS=OFF -DTXL_OLD_CPUS=ON \
 && ninja -C build ${TXL_JOBS:+-j$TXL_JOBS} txl-server txl txl-model \
 && strip build/bin/* \
 && mkdir -p /opt/txl/bin /opt/txl/lib \
 && cp build/bin/txl-server build/bin/txl build/bin/txl-model /opt/txl/bin/ \
 && cd .deps/venv/lib/python3*/site-packages/torch/lib \
 && cp libtorch.so libtorch_cpu.so libc10.so libgomp.so.1 /opt/txl/lib/

FROM ${DEBIAN_RUN}
ENV PATH=/opt/txl/bin:$PATH LD_LIBRARY_PATH=/opt/txl/lib
COPY --from=build /opt/txl /opt/txl
COPY --from=build /src/models/shakespeare /model
# The last command fails where a library is missing from this list.
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends \
      libgrpc++1.51 libprotobuf32 libprotobuf-lite32 libabsl20220623 \
      libtomlplusplus3 libutf8proc2 libedit2 libssl3 libhwy1 libisal2 \
      libpcre2-8-0 zlib1g libprometheus-cpp-core1.0 libsqlite3-0 \
      libhiredis0.14 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --no-create-home txl \
 && install -d -o 10001 -g 10001 -m 700 /data \
 && ! ldd /opt/txl/bin/* | grep 'not found'
ARG REVISION= VERSION=
LABEL org.opencontainers.image.title="txl-server" \
      org.opencontainers.image.description="Serves Transformer-XL language models over gRPC and HTTP" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.version="$VERSION"
# Variables, not arguments, so that variables can change them.
ENV TXL_MODEL=/model TXL_LISTEN=0.0.0.0:50051 TXL_HTTP_LISTEN=0.0.0.0:8080 \
    TXL_INSECURE=true
USER 10001:10001
EXPOSE 50051 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD ["txl", "status", "--check", "--timeout", "3"]
# SIGTERM drains: running turns have TXL_DRAIN_TIMEOUT, 30 s. Docker's own limit
# is 10 s: docker stop -t 35.
STOPSIGNAL SIGTERM
ENTRYPOINT ["txl-server"]
