// Source of the fixtures in this folder, which nvcc 13.0 (V13.0.88) made:
//   nvcc -fatbin -no-compress -lineinfo -gencode arch=compute_100f,code=[sm_100f,compute_100f] -o plain.fatbin scale.cu
//   nvcc -fatbin -compress-mode=balance -gencode arch=compute_100f,code=compute_100f -gencode arch=compute_90a,code=compute_90a \
//        -gencode arch=compute_80,code=compute_80 -o zstd.fatbin scale.cu
//   nvcc -fatbin -compress-mode=size -gencode arch=compute_90a,code=[sm_90a,compute_90a] -o size.fatbin scale.cu
//   nvcc -fatbin -compress-mode=speed -gencode arch=compute_100a,code=compute_100a -o lz4.fatbin scale.cu
__global__ void scale(float* data, float factor) { data[threadIdx.x] *= factor; }
__global__ void sum(const float* data, float* out, int n) {
  float s = 0;
#pragma unroll 1
  for (int i = 0; i < n; ++i) s += data[i];
  *out = s;
}
