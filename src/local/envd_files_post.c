/* POST /files: a raw body or a multipart form, to the disk as it arrives. Nothing of
 * it is held in memory, and what a client does not send to its end leaves no trace. */
#include "envd.h"
#include "envd_sink.h"
#include <cct/local/files_parse.h>
#include <cct/local/fs_meta.h>
#include <cct/local/multipart.h>
#include <cct/util/buf.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

struct upload {
    struct envd *e;
    struct http_req *req;
    char user[64];
    char *path; /* of the query; NULL when absent */
    struct multipart *form;
    struct sink sink;
    char *shown;         /* the open file as the answer names it */
    struct fs_meta meta; /* of each file */
    struct map *seen;    /* paths that came already */
    bool gzip, in_file;
    uint64_t came;
    struct buf answer;
    struct jw w;
    int status; /* 0 = fine so far */
    char error[1400];
};

static void upload_free(struct upload *u)
{
    sink_discard(&u->sink);
    multipart_free(u->form);
    fs_meta_release(&u->meta);
    map_free(u->seen, NULL);
    buf_release(&u->answer);
    free(u->shown);
    free(u->path);
    free(u);
}

static bool fail(struct upload *u, int status, const char *what, const char *name, int err)
{
    u->status = status != 0 ? status : envd_fs_status(err);
    const char *quote = *name != '\0' ? "'" : "";
    snprintf(u->error, sizeof(u->error), "%s%s%s%.1000s%s%s%s", what, *quote ? " " : "", quote,
             name, quote, err != 0 ? ": " : "", err != 0 ? envd_fs_reason(err) : "");
    return false;
}

static bool too_large(struct upload *u)
{
    return u->path != NULL ? fail(u, 413, "the body is too large for", u->path, 0)
                           : fail(u, 413, "the body is too large", "", 0);
}

/* --- one file ------------------------------------------------------------- */

/* Where the bytes go: the path itself, or what a link there leads to. *mode is that
 * of the file that is there, 0 when there is none. NULL when something else than a
 * file is there. */
static char *place(struct upload *u, const char *path, mode_t *mode)
{
    struct stat st;
    *mode = 0;
    int fd = fs_root_open(&u->e->files, path, O_PATH, 0);
    if (fd < 0 && errno == ENOENT)
        return xstrdup(path);
    if (fd < 0 || fstat(fd, &st) != 0) {
        fail(u, 0, "cannot write", path, errno);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    char *real = fs_root_where(fd);
    close(fd);
    if (S_ISREG(st.st_mode)) {
        *mode = st.st_mode & 07777;
        return real != NULL ? real : xstrdup(path);
    }
    fail(u, 400,
         S_ISDIR(st.st_mode) ? "path is a directory:" : "path is no regular file:", path, 0);
    free(real);
    return NULL;
}

static bool file_open(struct upload *u, const char *asked)
{
    mode_t mode;
    free(u->shown);
    u->shown = envd_fs_path_of(u->e, u->user, asked);
    if (u->shown == NULL)
        return asked != NULL && *asked != '\0'
                   ? fail(u, 400, "another user's home cannot be written:", asked, 0)
                   : fail(u, 400, "the file's path is missing", "", 0);
    if (map_put(u->seen, u->shown, u) != NULL)
        return fail(u, 400, "several files are sent for one path:", u->shown, 0);
    char *real = place(u, u->shown, &mode);
    if (real == NULL)
        return false;
    u->in_file = sink_open(&u->sink, &u->e->files, real, mode, u->gzip, u->e->upload_max) == 0;
    if (!u->in_file)
        fail(u, 0, "cannot write", u->shown, errno);
    free(real);
    return u->in_file;
}

static bool file_data(void *arg, const char *p, size_t len)
{
    struct upload *u = arg;
    if (!u->in_file || sink_write(&u->sink, p, len) == 0)
        return true;
    return fail(u, 0, "cannot write", u->shown, errno);
}

static bool file_end(void *arg)
{
    struct upload *u = arg;
    if (!u->in_file)
        return true;
    u->in_file = false;
    bool kept;
    if (sink_commit(&u->sink, &u->meta, &kept) != 0)
        return fail(u, 0, "cannot write", u->shown, errno);
    jw_obj(&u->w, NULL);
    jw_str(&u->w, "path", u->shown);
    jw_str(&u->w, "name", strrchr(u->shown, '/') + 1);
    jw_str(&u->w, "type", "file");
    if (u->meta.a.n > 0 && kept) {
        jw_obj(&u->w, "metadata");
        for (size_t i = 0; i < u->meta.a.n; i++)
            jw_str(&u->w, u->meta.a.v[i].key, u->meta.a.v[i].value);
        jw_end(&u->w);
    }
    jw_end(&u->w);
    if (!kept) /* the answer shows none, and so does every later look */
        envd_log(u->e, "the file system of '%s' keeps no metadata", u->shown);
    return true;
}

/* Fields of the form that are no files are passed over. */
static bool part_begin(void *arg, const struct files_part *p)
{
    struct upload *u = arg;
    if (!str_eq(p->name, "file"))
        return true;
    if (p->cut)
        return fail(u, 400, "the file's name is too long or damaged", "", 0);
    return file_open(u, u->path != NULL ? u->path : p->filename);
}

static const struct multipart_ops form_ops = {part_begin, file_data, file_end};

/* --- the body ------------------------------------------------------------- */

static void answer(struct upload *u)
{
    jw_end(&u->w);
    if (u->status == 0)
        envd_reply_json(u->req, 200, &u->answer);
    else
        envd_reply_error(u->req, u->status, "%s", u->error);
    upload_free(u);
}

static void body_piece(void *arg, const char *p, size_t len)
{
    struct upload *u = arg;
    u->came += len;
    if (u->came > u->e->upload_max)
        too_large(u);
    else if (u->form == NULL)
        file_data(u, p, len);
    else if (!multipart_feed(u->form, p, len) && u->status == 0)
        fail(u, 400, "the multipart form is damaged; last file:", u->shown ? u->shown : "none",
             0);
    if (u->status != 0)
        answer(u);
}

static void body_end(void *arg)
{
    struct upload *u = arg;
    if (u->form == NULL)
        file_end(u);
    else if (!multipart_is_whole(u->form))
        fail(u, 400, "the multipart form ends without its boundary; last file:",
             u->shown ? u->shown : "none", 0);
    answer(u);
}

static void body_cut(void *arg)
{
    upload_free(arg);
}

static const struct http_body_ops body_ops = {body_piece, body_end, body_cut};

/* How the body is to be read; false with the reason in u. */
static bool prepare(struct upload *u)
{
    const char *type = envd_header(u->req, "Content-Type");
    const char *coding = envd_header(u->req, "Content-Encoding");
    char boundary[80];
    u->gzip = coding != NULL && strcasecmp(coding, "gzip") == 0;
    if (u->req->content_length > 0 && (uint64_t)u->req->content_length > u->e->upload_max)
        return too_large(u);
    if (coding != NULL && !u->gzip && strcasecmp(coding, "identity") != 0)
        return fail(u, 400, "only gzip is understood, not", coding, 0);
    if (connect_type_is(type, "application/octet-stream"))
        return file_open(u, u->path);
    if (files_boundary(type, boundary, sizeof(boundary)) && !u->gzip) {
        u->form = multipart_new(boundary, &form_ops, u);
        return true;
    }
    return fail(u, 400, "the type must be multipart/form-data or application/octet-stream, not",
                type != NULL ? type : "none", 0);
}

static void metadata(struct upload *u)
{
    const char *value, *name = NULL;
    while ((name = http_req_next(u->req, name, &value)) != NULL)
        if (strncasecmp(name, FS_META_HEADER, strlen(FS_META_HEADER)) == 0)
            fs_meta_add(&u->meta, name + strlen(FS_META_HEADER), value);
}

void envd_files_post(struct envd *e, struct http_req *req)
{
    bool bad = false;
    struct upload *u = xcalloc(1, sizeof(*u));
    u->e = e;
    u->req = req;
    u->seen = map_new();
    u->path = envd_query(req, "path", &bad);
    if (u->path != NULL && *u->path == '\0') {
        free(u->path);
        u->path = NULL;
    }
    jw_init(&u->w, &u->answer);
    jw_arr(&u->w, NULL);
    if (!envd_user(e, req, u->user, sizeof(u->user)))
        fail(u, 401, "invalid username:", u->user, 0);
    else if (bad)
        fail(u, 400, "the path is damaged", "", 0);
    else if (metadata(u), u->meta.why[0] != '\0')
        fail(u, 400, u->meta.why, "", 0);
    else
        prepare(u);
    if (u->status != 0)
        answer(u);
    else
        http_body_take(req, &body_ops, u);
}
