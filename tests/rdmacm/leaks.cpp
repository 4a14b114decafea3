// Memory that librdmacm 44 does not give back: address handles of datagram rsockets, and that of
// riomap().
// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer calls it
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
    return "leak:librdmacm.so.1\n";
}
