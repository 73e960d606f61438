// One place that decides for which processors the inner loops are compiled. The program picks the
// best version when it starts, so a binary built on one machine is fast on another.
#pragma once

// An attribute cannot be chosen by a constant expression, hence the repository's only macro.
// ThreadSanitizer's runtime is not yet up when the loader asks which version to take.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define FSDP_CLONES [[gnu::target_clones("arch=x86-64-v4", "avx2", "default")]]
#else
#define FSDP_CLONES
#endif
