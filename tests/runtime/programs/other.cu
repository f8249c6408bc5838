// A second translation unit, compiled for another chip than the first.
__global__ void other(int* where) {
  *where = 1;
}
void launch_other(int* where) {
  other<<<1, 1>>>(where);
}
