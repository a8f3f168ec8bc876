/* FNV-1a: a number that stands for bytes, the same on every machine and in every run. Not
 * against people who want two things to have the same. */
#ifndef CCT_UTIL_HASH_H
#define CCT_UTIL_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_BEGIN 14695981039346656037u
uint64_t hash_add(uint64_t h, const void *data, size_t len);

#endif
