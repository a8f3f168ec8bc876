/* The files of a new sandbox on the host: empty homes for the plain root, or a
 * folder that takes the writes to a root of layers. All of it belongs to the
 * sandbox's user and goes with the sandbox, except a layer that is being built. */
#include "sbox_priv.h"
#include <cct/local/ns.h>
#include <cct/local/tpl_plan.h>
#include <cct/util/fs.h>
#include <cct/util/xalloc.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool sbox_root_is_layered(const struct sbox_new *n)
{
    return n->build_layer || (n->image && n->image->n_layers > 0);
}

/* Whether layers work here is tried once, when they are first asked for. */
static int check_layers(struct provider *p, struct err *e)
{
    if (p->unsafe)
        return err_set(e, ERR_UNSUPPORTED,
                       "templates with files of their own need isolated sandboxes, and this "
                       "provider runs without isolation");
    if (!p->layers_tried) {
        struct err why = {0};
        p->layers_tried = true;
        if (ns_layers_probe(p->state_dir, &why) != 0)
            p->layers_refused = xstrdup(why.text);
    }
    return p->layers_refused ? err_set(e, ERR_UNSUPPORTED, "%s", p->layers_refused) : 0;
}

static int check_names(const char *layers_dir, const struct sbox_new *n, struct err *e)
{
    size_t count = n->image ? n->image->n_layers : 0;
    for (size_t i = 0; i <= count; i++) {
        const char *name = i < count ? n->image->layers[i] : n->build_layer;
        if (name && !tpl_layer_name_ok(name))
            return err_set(e, ERR_CORRUPT, "layer '%.40s' has no valid name", name);
        if (i == count)
            break;
        char *path = xasprintf("%s/%s/root", layers_dir, name);
        bool there = access(path, F_OK) == 0;
        free(path);
        if (!there)
            return err_set(e, ERR_NOTFOUND,
                           "layer '%s' of the template is lost: build it again", name);
    }
    return 0;
}

static int make_home(const struct provider *p, const char *path, struct err *e)
{
    const struct ns_ids *ids = ns_ids();
    if (mkdir(path, 0755) != 0)
        return err_sys(e, 0, "cannot make '%s'", path);
    if (!p->unsafe && geteuid() == 0 && chown(path, ids->uid, ids->gid) != 0)
        return err_sys(e, 0, "cannot hand over '%s'", path);
    return 0;
}

int sbox_root_make(struct provider *p, const char *id, const struct sbox_new *n,
                   struct sbox_root *out, struct err *e)
{
    *out = (struct sbox_root){.image = n->image};
    bool layered = sbox_root_is_layered(n);
    int rc = layered ? check_layers(p, e) : 0;
    if (rc != 0)
        return rc;
    char *dir = boxstore_dir(p->state_dir, id);
    if (mkdir(dir, 0700) != 0) {
        rc = err_sys(e, 0, "cannot make '%s'", dir);
    } else if (!layered) {
        out->home = fs_join(dir, "home");
        out->root_home = fs_join(dir, "root");
        rc = make_home(p, out->home, e);
        if (rc == 0)
            rc = make_home(p, out->root_home, e);
    } else {
        out->layers_dir = fs_join(p->state_dir, "layers");
        out->upper =
            n->build_layer ? fs_join(out->layers_dir, n->build_layer) : fs_join(dir, "upper");
        rc = check_names(out->layers_dir, n, e);
        if (rc == 0)
            rc = ns_layer_make(out->upper, e);
    }
    free(dir);
    return rc;
}

void sbox_root_fill(const struct sbox_root *root, struct ns_spec *s)
{
    s->home = root->home;
    s->root_home = root->root_home;
    if (!root->layers_dir)
        return;
    s->layers_dir = root->layers_dir;
    s->upper = root->upper;
    s->layers = root->image ? (const char *const *)root->image->layers : NULL;
    s->n_layers = root->image ? root->image->n_layers : 0;
}

void sbox_root_release(struct sbox_root *root)
{
    free(root->home);
    free(root->root_home);
    free(root->layers_dir);
    free(root->upper);
    *root = (struct sbox_root){0};
}
