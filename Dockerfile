# For readers whose system is not Debian or Ubuntu: docker build -t gemm-ladder . && docker run --rm -it gemm-ladder
# With a GPU and its container toolkit: docker run --rm -it --gpus all gemm-ladder

FROM debian:12-slim AS tools
RUN apt-get update && apt-get install -y --no-install-recommends \
      ca-certificates git g++ python3 python3-pip \
      cmake ninja-build pkg-config catch2 libhwy-dev libfmt-dev libcli11-dev nlohmann-json3-dev libzstd-dev liblz4-dev \
    && rm -rf /var/lib/apt/lists/*

FROM tools
WORKDIR /ladder
COPY . .
RUN ./ladder build
CMD ["./ladder", "run"]
