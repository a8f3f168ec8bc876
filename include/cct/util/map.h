/* Hash map from a string or a 64-bit id to a pointer; keys are copied, values
 * borrowed and never NULL. One owner, not thread-safe. Order of iteration is
 * insertion order. Text and ids may stand in one map; they do not meet. */
#ifndef CCT_UTIL_MAP_H
#define CCT_UTIL_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map;

struct map *map_new(void);
void map_free(struct map *m, void (*free_value)(void *));   /* callback may be NULL */
void *map_get(const struct map *m, const char *key);        /* NULL when absent */
void *map_put(struct map *m, const char *key, void *value); /* returns the old value */
void *map_del(struct map *m, const char *key);
void *map_get_id(const struct map *m, uint64_t id);
void *map_put_id(struct map *m, uint64_t id, void *value);
void *map_del_id(struct map *m, uint64_t id);
size_t map_count(const struct map *m);
/* Iterate: start with *it = 0; returns the next value or NULL at the end. The
 * map must not change meanwhile, except that the current key may be deleted. */
void *map_next(const struct map *m, size_t *it, const char **key, uint64_t *id);

#endif
