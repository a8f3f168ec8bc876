/* A CA of our own, made anew or found in the folder, and a certificate from it. */
#include "conn.h"
#include <arpa/inet.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DAY = 24 * 3600, PEM_MAX = 64 << 10 };

struct authority {
    X509 *cert;
    EVP_PKEY *key;
};

static void fail(const char *what)
{
    char text[256];

    ERR_error_string_n(ERR_get_error(), text, sizeof(text));
    die("faultd: %s: %s", what, text);
}

static void extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509_EXTENSION *e;

    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    if (!e || !X509_add_ext(cert, e, -1))
        fail(value);
    X509_EXTENSION_free(e);
}

static X509 *certificate(const char *name, EVP_PKEY *key, X509 *issuer)
{
    X509 *cert = X509_new();
    X509_NAME *subject = X509_get_subject_name(cert);
    uint32_t serial;

    rand_bytes(&serial, sizeof(serial));
    X509_set_version(cert, 2);
    ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), serial | 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), -DAY);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3650L * DAY);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1,
                               -1, 0);
    X509_set_issuer_name(cert, issuer ? X509_get_subject_name(issuer) : subject);
    X509_set_pubkey(cert, key);
    extend(cert, issuer ? issuer : cert, NID_subject_key_identifier, "hash");
    return cert;
}

static void write_pem(const char *path, X509 *cert, EVP_PKEY *key)
{
    BIO *mem = BIO_new(BIO_s_mem());
    struct err e = {0};
    char *text;
    long n;

    if (cert ? !PEM_write_bio_X509(mem, cert)
             : !PEM_write_bio_PrivateKey(mem, key, NULL, NULL, 0, NULL, NULL))
        fail(path);
    n = BIO_get_mem_data(mem, &text);
    if (fs_write_private(path, text, (size_t)n, &e))
        die("faultd: %s", e.text);
    BIO_free(mem);
}

static void new_authority(struct authority *ca, const char *cert_path, const char *key_path)
{
    ca->key = EVP_EC_gen("P-256");
    ca->cert = certificate("faultd test CA", ca->key, NULL);
    extend(ca->cert, ca->cert, NID_basic_constraints, "critical,CA:TRUE");
    extend(ca->cert, ca->cert, NID_key_usage, "critical,keyCertSign,cRLSign");
    if (!X509_sign(ca->cert, ca->key, EVP_sha256()))
        fail("sign the CA");
    write_pem(key_path, NULL, ca->key);
    write_pem(cert_path, ca->cert, NULL); /* last: who sees it may use it */
}

static bool find_authority(struct authority *ca, const char *cert_path, const char *key_path)
{
    BIO *cert = BIO_new_file(cert_path, "r"), *key = BIO_new_file(key_path, "r");

    ca->cert = cert ? PEM_read_bio_X509(cert, NULL, NULL, NULL) : NULL;
    ca->key = key ? PEM_read_bio_PrivateKey(key, NULL, NULL, NULL) : NULL;
    BIO_free(cert);
    BIO_free(key);
    ERR_clear_error();
    return ca->cert && ca->key;
}

static X509 *server_certificate(const struct authority *ca, EVP_PKEY *key,
                                const char *const *names, size_t n)
{
    X509 *cert = certificate("localhost", key, ca->cert);
    struct buf alt = BUF_INIT;
    unsigned char room[16];

    buf_adds(&alt, "DNS:localhost,IP:127.0.0.1,IP:::1");
    for (size_t i = 0; i < n; i++) {
        bool ip =
            inet_pton(AF_INET, names[i], room) == 1 || inet_pton(AF_INET6, names[i], room) == 1;
        buf_addf(&alt, ",%s:%s", ip ? "IP" : "DNS", names[i]);
    }
    extend(cert, ca->cert, NID_subject_alt_name, buf_str(&alt));
    extend(cert, ca->cert, NID_basic_constraints, "critical,CA:FALSE");
    extend(cert, ca->cert, NID_ext_key_usage, "serverAuth");
    extend(cert, ca->cert, NID_authority_key_identifier, "keyid");
    if (!X509_sign(cert, ca->key, EVP_sha256()))
        fail("sign the certificate");
    buf_release(&alt);
    return cert;
}

/* ALPN: h2 before http/1.1, unless only the older is spoken. */
static int choose(SSL *ssl, const unsigned char **out, unsigned char *len,
                  const unsigned char *in, unsigned int in_len, void *h1_only)
{
    static const unsigned char both[] = "\x02h2\x08http/1.1", old[] = "\x08http/1.1";
    const unsigned char *ours = h1_only ? old : both;
    unsigned char *chosen;

    (void)ssl;
    if (SSL_select_next_proto(&chosen, len, ours, h1_only ? sizeof(old) - 1 : sizeof(both) - 1,
                              in, in_len) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static struct {
    struct authority ca;
    EVP_PKEY *key;
} own;

/* No client takes "*.localhost", for a wildcard needs two labels behind it: a name of
 * that kind gets its certificate when it is asked for. */
static int on_name(SSL *ssl, int *alert, void *arg)
{
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    X509 *cert;

    (void)alert, (void)arg;
    if (!name || !str_ends(name, ".localhost") ||
        name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.")])
        return SSL_TLSEXT_ERR_OK;
    cert = server_certificate(&own.ca, own.key, &name, 1);
    SSL_use_certificate(ssl, cert);
    X509_free(cert);
    return SSL_TLSEXT_ERR_OK;
}

SSL_CTX *tls_context(const char *dir, const char *const *names, size_t n, bool h1_only)
{
    char *cert_path = fs_join(dir, "ca.pem"), *key_path = fs_join(dir, "ca.key");
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    X509 *cert;

    own.key = EVP_EC_gen("P-256");
    if (!ctx || !own.key)
        fail("set up TLS");
    if (!find_authority(&own.ca, cert_path, key_path))
        new_authority(&own.ca, cert_path, key_path);
    cert = server_certificate(&own.ca, own.key, names, n);
    if (SSL_CTX_use_certificate(ctx, cert) != 1 || SSL_CTX_use_PrivateKey(ctx, own.key) != 1)
        fail("use the certificate");
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_alpn_select_cb(ctx, choose, h1_only ? ctx : NULL);
    SSL_CTX_set_tlsext_servername_callback(ctx, on_name);
    X509_free(cert);
    free(cert_path);
    free(key_path);
    return ctx;
}
