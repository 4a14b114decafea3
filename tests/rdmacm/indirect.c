/* A library that brings libsimverbs-rdmacm.so along, behind libc. */
void rdmacm_test_indirect(void) {}
