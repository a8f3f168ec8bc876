/* map: strings and ids side by side, order, holes, growth. */
#include <cct/util/map.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* keep last */
#include <cmocka.h>

static int values[4096];

static void test_put_get_del(void **state)
{
    (void)state;
    struct map *m = map_new();
    assert_null(map_get(m, "a"));
    assert_null(map_del(m, "a"));
    assert_null(map_put(m, "a", &values[0]));
    assert_ptr_equal(map_put(m, "a", &values[1]), &values[0]);
    assert_ptr_equal(map_get(m, "a"), &values[1]);
    assert_null(map_get(m, "A"));
    assert_null(map_put(m, "", &values[2]));
    assert_ptr_equal(map_get(m, ""), &values[2]);
    assert_null(map_put_id(m, 0, &values[3]));
    assert_ptr_equal(map_get_id(m, 0), &values[3]);
    assert_null(map_get_id(m, 1));
    assert_int_equal(map_count(m), 3);
    assert_ptr_equal(map_del(m, "a"), &values[1]);
    assert_null(map_get(m, "a"));
    assert_int_equal(map_count(m), 2);
    map_free(m, NULL);
    map_free(NULL, NULL);
}

static void test_order_and_growth(void **state)
{
    (void)state;
    struct map *m = map_new();
    char key[32];
    for (int i = 0; i < 4096; i++) {
        snprintf(key, sizeof(key), "key-%d-of-many", i);
        assert_null(map_put(m, key, &values[i]));
    }
    size_t it = 0;
    const char *name;
    for (int i = 0; i < 4096; i++) {
        uint64_t id = 7;
        assert_ptr_equal(map_next(m, &it, &name, &id), &values[i]);
        snprintf(key, sizeof(key), "key-%d-of-many", i);
        assert_string_equal(name, key);
        assert_int_equal(id, 0);
    }
    assert_null(map_next(m, &it, &name, NULL));
    map_free(m, NULL);
}

/* The table must not grow when entries only come and go. */
static void test_churn(void **state)
{
    (void)state;
    struct map *m = map_new();
    for (uint64_t i = 0; i < 200000; i++) {
        map_put_id(m, i, &values[i % 4096]);
        if (i >= 10)
            assert_ptr_equal(map_del_id(m, i - 10), &values[(i - 10) % 4096]);
    }
    assert_int_equal(map_count(m), 10);
    for (uint64_t i = 199990; i < 200000; i++)
        assert_ptr_equal(map_get_id(m, i), &values[i % 4096]);
    map_free(m, NULL);
}

static void test_delete_while_iterating(void **state)
{
    (void)state;
    struct map *m = map_new();
    for (uint64_t i = 0; i < 100; i++)
        map_put_id(m, i, &values[i]);
    size_t it = 0, seen = 0;
    uint64_t id;
    while (map_next(m, &it, NULL, &id)) {
        seen++;
        if (id % 2)
            map_del_id(m, id);
    }
    assert_int_equal(seen, 100);
    assert_int_equal(map_count(m), 50);
    map_free(m, NULL);
}

static int freed;
static void count_free(void *v)
{
    (void)v;
    freed++;
}

static void test_free_values(void **state)
{
    (void)state;
    struct map *m = map_new();
    map_put(m, "a", &values[0]);
    map_put(m, "b", &values[1]);
    map_put_id(m, 9, &values[2]);
    map_del(m, "b");
    map_free(m, count_free);
    assert_int_equal(freed, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_get_del), cmocka_unit_test(test_order_and_growth),
        cmocka_unit_test(test_churn),       cmocka_unit_test(test_delete_while_iterating),
        cmocka_unit_test(test_free_values),
    };
    return cmocka_run_group_tests_name("util_map", tests, NULL, NULL);
}
