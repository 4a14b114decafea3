// Memory that librdmacm 44 does not give back: address handles of datagram rsockets, and that of
// riomap().
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the sanitizer calls it
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
    return "leak:librdmacm.so.1\n";
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
