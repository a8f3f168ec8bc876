/* Groups of cmocka tests that mostly wait, in processes side by side. */
#ifndef CCT_TESTS_SIDEBYSIDE_H
#define CCT_TESTS_SIDEBYSIDE_H

/* Runs run(0) .. run(n - 1), each in a child of its own (before any thread was made), whose
 * output comes as a whole; 0 when all returned 0. */
int side_by_side(int n, int (*run)(int i));

#endif
