// What the thread sanitizer leaves out: memory that the distribution's gRPC,
// built without it, frees by itself (an alarm's, at its end). Nothing that own
// code does is left out, neither under gRPC's callbacks.

extern "C" const char* __tsan_default_suppressions();

const char* __tsan_default_suppressions() {
  return "called_from_lib:libgrpc++.so\n";
}
