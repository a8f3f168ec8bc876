/* The built-in templates. All of them mean the same thing here, and say so: the
 * host's programs read-only, and a private writable home. The names tell the
 * client which agent's command line is meant. */
#include <cct/local/ctl.h>
#include <cct/local/init.h>
#include <cct/local/provider.h>
#include <cct/util/json.h>

#include <string.h>

#define MADE_AT "2026-01-01T00:00:00.000Z"

static const struct ctl_template all[] = {
    {"localbase00000000000", "base", "local/base"},
    {"localdemo00000000000", "demo", "local/demo"},
    {"localshell0000000000", "shell", "local/shell"},
    {"localclaude000000000", "claude", "local/claude"},
    {"localcodex0000000000", "codex", "local/codex"},
    {"localopencode0000000", "opencode", "local/opencode"},
    {"localpi0000000000000", "pi", "local/pi"},
};

const struct ctl_template *ctl_template_find(const char *ref)
{
    size_t len = strlen(ref);
    const char *colon = strchr(ref, ':');
    if (colon) {
        if (strcmp(colon, ":default") != 0)
            return NULL;
        len = (size_t)(colon - ref);
    }
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        const char *forms[] = {all[i].id, all[i].alias, all[i].names};
        for (size_t k = 0; k < 3; k++)
            if (strlen(forms[k]) == len && memcmp(forms[k], ref, len) == 0)
                return &all[i];
    }
    return NULL;
}

static void write_template(struct jw *w, const struct ctl_template *t)
{
    jw_obj(w, NULL);
    jw_str(w, "templateID", t->id);
    jw_str(w, "buildID", "00000000-0000-4000-8000-000000000000");
    jw_i64(w, "cpuCount", PROV_CPU);
    jw_i64(w, "memoryMB", PROV_MEM_MB);
    jw_i64(w, "diskSizeMB", 0);
    jw_bool(w, "public", false);
    jw_arr(w, "aliases");
    jw_str(w, NULL, t->alias);
    jw_end(w);
    jw_arr(w, "names");
    jw_str(w, NULL, t->names);
    jw_str(w, NULL, "host programs read-only + private home");
    jw_end(w);
    jw_str(w, "createdAt", MADE_AT);
    jw_str(w, "updatedAt", MADE_AT);
    jw_null(w, "createdBy");
    jw_null(w, "lastSpawnedAt");
    jw_i64(w, "spawnCount", 0);
    jw_i64(w, "buildCount", 1);
    jw_str(w, "envdVersion", INIT_ENVD_VERSION);
    jw_str(w, "buildStatus", "ready");
    jw_end(w);
}

void ctl_templates_json(struct buf *b)
{
    struct jw w;
    jw_init(&w, b);
    jw_arr(&w, NULL);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        write_template(&w, &all[i]);
    jw_end(&w);
}

void ctl_template_json(struct buf *b, const struct ctl_template *t)
{
    struct jw w;
    jw_init(&w, b);
    write_template(&w, t);
}
