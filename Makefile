# cc-tui: one Makefile. `make run` and `make test` set up what is missing.
# MODE=release|debug|asan|tsan  PREFIX=/usr/local  DESTDIR=  V=1 (show commands)
MODE ?= release
PREFIX ?= /usr/local
DESTDIR ?=
VERSION := 0.1.0
B := build/$(MODE)

.DEFAULT_GOAL := all
ifeq ($(V),)
Q := @
endif

# --- set-up: what is missing is installed before anything is built -----------
SETUP_GOALS := all run test e2e bench lint check agents soak
ifneq ($(filter $(SETUP_GOALS),$(or $(MAKECMDGOALS),all)),)
ifeq ($(CCT_SETUP),)
ifneq ($(shell tests/setup.sh $(filter test e2e bench lint check agents soak,$(MAKECMDGOALS)) 1>&2 && echo done),done)
$(error the set-up failed: what is missing is said above)
endif
endif
endif

LIBS := ncursesw libcjson libsodium sqlite3 zlib
LOCAL_LIBS := libcjson libsodium libevent_core libseccomp zlib
PKG := pkg-config
OPT_release := -O2 -D_FORTIFY_SOURCE=2 -fno-asynchronous-unwind-tables
OPT_debug := -O0
OPT_asan := -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
OPT_tsan := -O1 -fsanitize=thread -fno-omit-frame-pointer
# what only drives the product is compiled the fast way: the tests are more code than it is
QUICK_release := -O1
QUICK_asan := -O0
QUICK_tsan := -O0
WARN := -Wall -Wextra -Wshadow -Wformat=2 -Wvla -Wundef -Wwrite-strings \
	-Wstrict-prototypes -Wmissing-prototypes $(WERROR)
CFLAGS_ALL = -std=c11 -D_GNU_SOURCE -DCCT_VERSION='"$(VERSION)"' -g $(OPT_$(MODE)) $(WARN) \
	-fstack-protector-strong -fPIE -pthread -Iinclude -I$(B)/gen $(PKG_CFLAGS) $(QUICK) $(CFLAGS)
# the loader of glibc 2.36 takes the 5,600 places of tables as bits, a hundredth of the size
RELR := $(if $(filter release,$(MODE)),$(shell getconf GNU_LIBC_VERSION 2>/dev/null | \
	awk '{ split($$2, v, "."); if (v[1] > 2 || v[2] >= 36) print "-Wl,-z,pack-relative-relocs" }'))
LDFLAGS_ALL = -pie -Wl,-z,relro,-z,now $(RELR) -pthread $(filter -fsanitize%,$(OPT_$(MODE))) $(LDFLAGS)
PKG_CFLAGS := $(shell $(PKG) --cflags $(LIBS) $(LOCAL_LIBS) 2>/dev/null)
# part of a release: at each start the loader spends longer on them than a command works
LINKED_IN := $(if $(filter release,$(MODE)),$(if $(filter-out /%,$(foreach l,ncursesw tinfo \
	sodium sqlite3 z,$(shell $(CC) -print-file-name=lib$l.a))),,ncursesw libsodium sqlite3 zlib))
LDLIBS = $(if $(LINKED_IN),-Wl$(,)-Bstatic $(shell $(PKG) --libs $(LINKED_IN)) -Wl$(,)-Bdynamic) \
	$(shell $(PKG) --libs $(filter-out $(LINKED_IN),$(LIBS))) -ldl -lm
, := ,
LDLIBS_LOCAL = $(shell $(PKG) --libs $(LOCAL_LIBS)) -lm -lutil
LDLIBS_TEST = $(LDLIBS) $(LDLIBS_LOCAL) $(shell $(PKG) --libs cmocka vterm) -lutil

LIB_SRC := $(filter-out src/main.c src/local/%,$(wildcard src/*/*.c ui/*.c ui/*/*.c))
LOCAL_SRC := $(wildcard src/local/*.c)
LOCAL_SHARED := $(wildcard src/util/*.c src/secrets/digest.c)
o = $(patsubst %.c,$(B)/%.o,$(1))
UNIT := $(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(wildcard tests/unit/test_*.c))
FUZZ := $(patsubst tests/fuzz/%.c,$(B)/tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
GOLDEN := $(patsubst tests/golden/%.c,$(B)/tests/golden/%,$(wildcard tests/golden/test_*.c))
E2E := $(patsubst tests/e2e/%.c,$(B)/tests/e2e/%,$(wildcard tests/e2e/test_*.c))
BENCH := $(patsubst tests/bench/%.c,$(B)/tests/bench/%,$(wildcard tests/bench/bench_*.c))
SOAK := $(call o,$(wildcard tests/soak/*.c))
FLOORS := $(B)/tests/bench/ncmin $(B)/tests/bench/multi $(B)/tests/bench/evfloor \
	$(B)/tests/bench/streamfloor $(B)/tests/bench/cursesfloor $(B)/tests/bench/linesink
FAULTD := $(if $(wildcard tests/faultd/*.c),$(B)/faultd)
BINS := $(if $(wildcard src/main.c),$(B)/cc-tui) $(if $(wildcard src/local/main.c),$(B)/cc-tui-local)
FAKEAPP := $(wildcard tests/lib/fakeapp*.c)
HELP_SRC := $(filter-out $(FAKEAPP),$(wildcard tests/lib/*.c))

all: $(B)/libcct.a $(BINS) compile_commands.json

$(B)/cc-tui: $(call o,src/main.c) $(B)/libcct.a
$(B)/cc-tui-local: $(call o,$(LOCAL_SRC)) $(call o,$(LOCAL_SHARED))
$(B)/cc-tui-local: LDLIBS = $(LDLIBS_LOCAL)
$(BINS):
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LDLIBS)

$(B)/libcct.a: $(call o,$(LIB_SRC))
$(B)/libcctlocal.a: $(call o,$(filter-out src/local/main.c,$(LOCAL_SRC)))
$(B)/libtest.a: $(call o,$(HELP_SRC))
$(B)/%.a:
	$(Q)rm -f $@ && ar rcs $@ $^

# what runs once in a while need not be fast, and is a quarter smaller so; `private`: B/flags is
# made with the flags of all
SMALL := src/app/% src/cli/% src/config/% src/keys/% ui/dialogs/% src/jobs/build_% src/jobs/core_% \
	src/jobs/file_%
$(call o,$(filter $(SMALL),$(LIB_SRC))): private OPT_release += -Os

$(B)/%.o: %.c $(B)/flags
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# data files become C arrays: src/jobs/runner.sh -> gen/runner.sh.h
$(B)/gen/%.h: src/jobs/%
	$(Q)mkdir -p $(@D)
	$(Q)od -An -v -tx1 $< | sed 's/ \(..\)/0x\1,/g' > $@
$(B)/gen/%.h: themes/%
	$(Q)mkdir -p $(@D)
	$(Q)od -An -v -tx1 $< | sed 's/ \(..\)/0x\1,/g' > $@
GEN := $(patsubst src/jobs/%,$(B)/gen/%.h,$(wildcard src/jobs/*.sh)) \
	$(patsubst themes/%,$(B)/gen/%.h,$(wildcard themes/*.theme))
$(call o,$(LIB_SRC)): | $(GEN)

$(call o,$(wildcard tests/unit/*.c tests/golden/*.c tests/fuzz/*.c tests/e2e/*.c)): private QUICK = $(QUICK_$(MODE))

# a change of flags rebuilds everything of that mode
$(B)/flags: FORCE
	@mkdir -p $(@D); echo '$(subst ','\'',$(CC) $(CFLAGS_ALL) $(QUICK_$(MODE)))' | cmp -s - $@ || \
	  echo '$(subst ','\'',$(CC) $(CFLAGS_ALL) $(QUICK_$(MODE)))' > $@
FORCE:

$(UNIT) $(GOLDEN) $(E2E) $(BENCH) $(FUZZ): $(B)/tests/%: $(B)/tests/%.o $(B)/libtest.a $(B)/libcctlocal.a $(B)/libcct.a
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(B)/libcct.a $(LDLIBS_TEST)
# screens are tried with a facade that only writes down what it is asked
$(patsubst tests/%.c,$(B)/tests/%,$(shell grep -lsE 'screenscript|screenrig|fakeapp' tests/*/*_*.c)): $(call o,$(FAKEAPP))
# these ask by libcurl itself
$(patsubst %,$(B)/tests/e2e/test_faultd_%,self wire data): LDLIBS_TEST += $(shell $(PKG) --libs libcurl)
$(B)/tests/soak/soak: $(SOAK) $(B)/libtest.a $(B)/libcct.a
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LDLIBS_TEST)
# floors stand alone: each is linked with the one library that it measures
$(B)/tests/bench/ncmin $(B)/tests/bench/cursesfloor: LDLIBS = $(shell $(PKG) --libs ncursesw)
$(B)/tests/bench/multi $(B)/tests/bench/streamfloor: LDLIBS = $(shell $(PKG) --libs libcurl)
$(B)/tests/bench/evfloor: LDLIBS = $(shell $(PKG) --libs libevent)
$(FLOORS): %: %.o
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LDLIBS)
$(B)/faultd: $(call o,$(wildcard tests/faultd/*.c)) $(B)/libcct.a
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(shell $(PKG) --libs libcjson libnghttp2 openssl) -lm
-include $(shell find $(B) -name '*.d' 2>/dev/null)

run: all
	@exec $(B)/cc-tui $(ARGS)

# all tests but the benchmarks; `make test T=unit/test_buf` builds and runs one, T=nothing builds all
TESTS := $(UNIT) $(GOLDEN) $(FUZZ)
picked = $(if $(filter-out nothing,$(T)),$(foreach t,$(T),$(filter $(B)/tests/$t $(B)/tests/$t/%,$1)),$1)
.PHONY: all run test unit e2e bench agents soak lint fmt install uninstall clean check FORCE
test: all $(call picked,$(TESTS) $(E2E)) $(FAULTD)
	@B=$(B) MODE=$(MODE) tests/run.sh $(or $(T),sdk e2e cli golden unit fuzz)
unit: all $(call picked,$(TESTS))
	@B=$(B) MODE=$(MODE) tests/run.sh $(or $(T),unit golden fuzz)
e2e: all $(call picked,$(E2E)) $(FAULTD)
	@B=$(B) MODE=$(MODE) tests/run.sh $(or $(T),cli e2e sdk)
bench: all $(BENCH) $(FLOORS) $(FAULTD)
	@B=$(B) MODE=$(MODE) RUNS=$(RUNS) tests/bench/run.sh $(SECTION)
agents: all # the real ones, fetched from npm, with a stand-in for their models
	@B=$(B) tests/agents/test_agents.sh
soak: all $(B)/tests/soak/soak # hours of work and keys; MINUTES, SEED, AGENTS
	@B=$(B) MINUTES=$(MINUTES) SEED=$(SEED) AGENTS=$(AGENTS) tests/soak/soak.sh
check: # the whole gate: both compilers, all tests, sanitizers, lint
	@.ci/run
lint:
	@CC='$(CC)' tests/lint/lint.sh
fmt: ; clang-format -i $$(git ls-files '*.c' '*.h')

compile_commands.json: Makefile $(LIB_SRC) $(LOCAL_SRC)
	@{ echo '['; for f in $(LIB_SRC) $(LOCAL_SRC) src/main.c; do printf '%s{"directory":"%s","file":"%s","command":"%s"}' \
	  "$$sep" '$(CURDIR)' "$$f" '$(subst ','\'',$(subst ",\",$(CC) $(CFLAGS_ALL))) -c '"$$f"; sep=','; done; echo ']'; } > $@

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/cc-tui/themes $(DESTDIR)$(PREFIX)/share/doc/cc-tui \
	  $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/man/man5
	install -m 755 -s $(BINS) $(DESTDIR)$(PREFIX)/bin
	install -m 644 themes/*.theme $(DESTDIR)$(PREFIX)/share/cc-tui/themes
	install -m 644 README.md cc-tui.conf.example LICENSE $(DESTDIR)$(PREFIX)/share/doc/cc-tui
	install -m 644 docs/cc-tui.1 $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 docs/cc-tui.conf.5 $(DESTDIR)$(PREFIX)/share/man/man5
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/cc-tui $(DESTDIR)$(PREFIX)/bin/cc-tui-local
	rm -f $(DESTDIR)$(PREFIX)/share/man/man1/cc-tui.1 $(DESTDIR)$(PREFIX)/share/man/man5/cc-tui.conf.5
	rm -rf $(DESTDIR)$(PREFIX)/share/cc-tui $(DESTDIR)$(PREFIX)/share/doc/cc-tui
clean: ; rm -rf build compile_commands.json
