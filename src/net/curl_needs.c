/* What libcurl needs, opened one after the other before it. The dynamic linker looks for each
 * name in all libraries that came with one call: some ten thousand names in forty of them take
 * it longer than all the rest. A library that comes by itself is looked through with its own
 * few. What cannot be read or opened here comes with libcurl, as ever. */
#include "curl_dl.h"
#include <cct/util/xalloc.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct image {
    const char *p;
    size_t len;
};

static const void *at(const struct image *m, uint64_t off, uint64_t len)
{
    return off <= m->len && len <= m->len - off ? m->p + off : NULL;
}

static const ElfW(Phdr) *headers(const struct image *m, size_t *n)
{
    const ElfW(Ehdr) *h = at(m, 0, sizeof(*h));

    if (!h || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_phentsize != sizeof(ElfW(Phdr)) ||
        h->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32))
        return NULL;
    *n = h->e_phnum;
    return h->e_phoff % sizeof(void *) ? NULL : at(m, h->e_phoff, *n * sizeof(ElfW(Phdr)));
}

/* Place in the file of what will lie at an address. */
static uint64_t place_of(const ElfW(Phdr) *ph, size_t n, uint64_t address)
{
    for (size_t i = 0; i < n; i++)
        if (ph[i].p_type == PT_LOAD && address >= ph[i].p_vaddr &&
            address - ph[i].p_vaddr < ph[i].p_filesz)
            return ph[i].p_offset + (address - ph[i].p_vaddr);
    return UINT64_MAX;
}

static void open_needed(const struct image *m)
{
    size_t n = 0, n_dyn = 0;
    const ElfW(Phdr) *ph = headers(m, &n);
    const ElfW(Dyn) *dyn = NULL;
    uint64_t names = UINT64_MAX;

    for (size_t i = 0; ph && i < n; i++)
        if (ph[i].p_type == PT_DYNAMIC && ph[i].p_offset % sizeof(void *) == 0) {
            n_dyn = ph[i].p_filesz / sizeof(*dyn);
            dyn = at(m, ph[i].p_offset, n_dyn * sizeof(*dyn));
        }
    for (size_t i = 0; dyn && i < n_dyn && dyn[i].d_tag != DT_NULL; i++) {
        if (dyn[i].d_tag == DT_STRTAB)
            names = place_of(ph, n, dyn[i].d_un.d_ptr);
        if (dyn[i].d_tag == DT_RPATH || dyn[i].d_tag == DT_RUNPATH)
            return; /* it knows better than we where they lie */
    }
    for (size_t i = 0; dyn && i < n_dyn && dyn[i].d_tag != DT_NULL; i++) {
        uint64_t off = names + dyn[i].d_un.d_val;

        if (dyn[i].d_tag == DT_NEEDED && names < m->len && off < m->len &&
            memchr(m->p + off, '\0', m->len - off))
            (void)dlopen(m->p + off, RTLD_LAZY | RTLD_LOCAL);
    }
}

/* Where the C library lies; elsewhere nothing is gained, and nothing lost. */
static char *beside_libc(const char *name)
{
    Dl_info libc;
    const char *slash;

    if (!dladdr((const void *)(uintptr_t)strlen, &libc) || !libc.dli_fname)
        return NULL;
    slash = strrchr(libc.dli_fname, '/');
    return slash ? xasprintf("%.*s/%s", (int)(slash - libc.dli_fname), libc.dli_fname, name) : NULL;
}

void curl_needs_open(const char *name)
{
    char *path = beside_libc(name);
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0) {
        struct image m = {.len = (size_t)st.st_size};
        void *p = mmap(NULL, m.len, PROT_READ, MAP_PRIVATE, fd, 0);

        if (p != MAP_FAILED) {
            m.p = p;
            open_needed(&m);
            munmap(p, m.len);
        }
    }
    if (fd >= 0)
        close(fd);
    free(path);
}
