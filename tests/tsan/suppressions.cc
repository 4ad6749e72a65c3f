// What the thread sanitizer leaves out, of the distribution's libraries, which
// are built without it: memory that gRPC frees by itself (an alarm's, at its
// end), and the table of held locks by which Abseil finds cycles, which it
// guards with a lock that the sanitizer does not see. Nothing that own code
// does is left out, neither under gRPC's callbacks.

extern "C" const char* __tsan_default_suppressions();

const char* __tsan_default_suppressions() {
  return "called_from_lib:libgrpc++.so\n"
         "called_from_lib:libabsl_graphcycles_internal.so\n";
}
