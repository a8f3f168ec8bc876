/* The groups of cases, by name. */
#include "keyrun.h"

extern const struct key_group keys_list, keys_output, keys_input, keys_forms, keys_boxes, keys_low,
    keys_wall, keys_usage, keys_builds, keys_leave,
    keys_procs, keys_files, keys_changes, keys_pair, keys_cloud, keys_wide, keys_replay;

const struct key_group *const key_groups[] = {&keys_list, &keys_output, &keys_input,
                                              &keys_forms, &keys_boxes, &keys_low, &keys_wall, &keys_usage,
                                              &keys_builds, &keys_leave, &keys_procs, &keys_files,
                                              &keys_changes, &keys_pair, &keys_cloud, &keys_wide, &keys_replay};
const size_t n_key_groups = sizeof(key_groups) / sizeof(key_groups[0]);
