/* Hash map that keeps insertion order: entries stand in an array, a table of
 * indices finds them. A removed entry stays as a hole until the next rebuild,
 * so indices of an iteration stay good while its current key is removed. */
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    char *key;   /* NULL for an id */
    uint64_t id; /* the id, or the key's length */
    uint64_t hash;
    void *value; /* NULL: a hole */
};

struct map {
    struct entry *entries;
    uint32_t *table; /* index + 1, 0 = free; size is a power of two */
    size_t size;     /* of table; 3/4 of it may be entries, holes included */
    size_t used;     /* entries with holes */
    size_t count;    /* without */
    uint64_t seed;   /* keys come from outside: collisions must not be plannable */
};

static uint64_t mix(uint64_t h, uint64_t w)
{
    __uint128_t m = (__uint128_t)(h ^ w) * 0x9E3779B97F4A7C15u;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static uint64_t hash_key(const struct map *m, const char *key, size_t len)
{
    uint64_t h = m->seed ^ len, w;

    for (; len >= 8; key += 8, len -= 8) {
        memcpy(&w, key, 8);
        h = mix(h + m->seed, w);
    }
    w = 0;
    if (len)
        memcpy(&w, key, len);
    return mix(mix(h + m->seed, w), m->seed);
}

static uint64_t hash_id(const struct map *m, uint64_t id)
{
    return mix(mix(m->seed, id), m->seed);
}

struct map *map_new(void)
{
    struct map *m = xcalloc(1, sizeof(*m));
    rand_bytes(&m->seed, sizeof(m->seed));
    return m;
}

void map_free(struct map *m, void (*free_value)(void *))
{
    if (!m)
        return;
    for (size_t i = 0; i < m->used; i++) {
        struct entry *e = &m->entries[i];
        free(e->key);
        if (e->value && free_value)
            free_value(e->value);
    }
    free(m->entries);
    free(m->table);
    free(m);
}

/* `key` NULL looks for the id, else id is the key's length. */
static struct entry *find(const struct map *m, const char *key, uint64_t id, uint64_t hash)
{
    if (m->size == 0)
        return NULL;
    for (size_t i = hash & (m->size - 1);; i = (i + 1) & (m->size - 1)) {
        if (m->table[i] == 0)
            return NULL;
        struct entry *e = &m->entries[m->table[i] - 1];
        if (!e->value || e->hash != hash || e->id != id || !e->key != !key)
            continue;
        if (!key || memcmp(e->key, key, id) == 0)
            return e;
    }
}

static void place(struct map *m, size_t index)
{
    size_t i = m->entries[index].hash & (m->size - 1);
    while (m->table[i] != 0)
        i = (i + 1) & (m->size - 1);
    m->table[i] = (uint32_t)(index + 1);
}

/* Drop the holes, and double the table when it is really full. */
static void rebuild(struct map *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->used; i++)
        if (m->entries[i].value)
            m->entries[n++] = m->entries[i];
    m->used = n;
    if (m->size == 0 || n >= m->size / 2) {
        m->size = m->size ? m->size * 2 : 16;
        if (m->size > UINT32_MAX)
            die("out of memory (%zu map entries wanted)", n);
        m->entries = xrealloc(m->entries, m->size / 4 * 3 * sizeof(*m->entries));
        free(m->table);
        m->table = xcalloc(m->size, sizeof(*m->table));
    } else {
        memset(m->table, 0, m->size * sizeof(*m->table));
    }
    for (size_t i = 0; i < m->used; i++)
        place(m, i);
}

static void *put(struct map *m, const char *key, uint64_t id, uint64_t hash, void *value)
{
    if (!value)
        BUG("NULL put into a map");
    struct entry *e = find(m, key, id, hash);
    if (e) {
        void *old = e->value;
        e->value = value;
        return old;
    }
    if (m->used == m->size / 4 * 3)
        rebuild(m);
    m->entries[m->used] = (struct entry){
        .key = key ? xstrndup(key, (size_t)id) : NULL, .id = id, .hash = hash, .value = value};
    place(m, m->used++);
    m->count++;
    return NULL;
}

static void *del(struct map *m, struct entry *e)
{
    if (!e)
        return NULL;
    void *old = e->value;
    free(e->key);
    e->key = NULL;
    e->value = NULL;
    m->count--;
    return old;
}

void *map_get(const struct map *m, const char *key)
{
    size_t len = strlen(key);
    struct entry *e = find(m, key, len, hash_key(m, key, len));
    return e ? e->value : NULL;
}

void *map_put(struct map *m, const char *key, void *value)
{
    size_t len = strlen(key);
    return put(m, key, len, hash_key(m, key, len), value);
}

void *map_del(struct map *m, const char *key)
{
    size_t len = strlen(key);
    return del(m, find(m, key, len, hash_key(m, key, len)));
}

void *map_get_id(const struct map *m, uint64_t id)
{
    struct entry *e = find(m, NULL, id, hash_id(m, id));
    return e ? e->value : NULL;
}

void *map_put_id(struct map *m, uint64_t id, void *value)
{
    return put(m, NULL, id, hash_id(m, id), value);
}

void *map_del_id(struct map *m, uint64_t id)
{
    return del(m, find(m, NULL, id, hash_id(m, id)));
}

size_t map_count(const struct map *m)
{
    return m->count;
}

void *map_next(const struct map *m, size_t *it, const char **key, uint64_t *id)
{
    while (*it < m->used) {
        struct entry *e = &m->entries[(*it)++];
        if (!e->value)
            continue;
        if (key)
            *key = e->key;
        if (id)
            *id = e->key ? 0 : e->id;
        return e->value;
    }
    return NULL;
}
