/* The tables, and the steps that bring an older database to them. Row ids are never
 * used twice (AUTOINCREMENT) where other parts hold them across deletions. */
#include "store_schema.h"

static const char first[] =
    "CREATE TABLE sandboxes("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, sandboxId TEXT UNIQUE, session TEXT, name TEXT,"
    " tool TEXT, project TEXT, templateId TEXT, alias TEXT, mark TEXT, reason TEXT,"
    " lastLine TEXT, account TEXT, state TEXT NOT NULL, agent TEXT NOT NULL, gone INTEGER NOT "
    "NULL,"
    " isForeign INTEGER NOT NULL, vmUp INTEGER NOT NULL, unlisted INTEGER NOT NULL,"
    " notIsolated INTEGER NOT NULL, protect INTEGER NOT NULL, pending INTEGER NOT NULL,"
    " startedAt INTEGER NOT NULL, endAt INTEGER NOT NULL, endedAt INTEGER NOT NULL,"
    " seenAt INTEGER NOT NULL, createdAt INTEGER NOT NULL, agentSince INTEGER NOT NULL,"
    " cpuCount INTEGER NOT NULL, memoryMb INTEGER NOT NULL, diskMb INTEGER NOT NULL,"
    " costUsd REAL, tokensIn INTEGER NOT NULL, tokensOut INTEGER NOT NULL, meta TEXT);"
    "CREATE INDEX sandboxesByMark ON sandboxes(mark) WHERE mark IS NOT NULL;"

    "CREATE TABLE sandboxMessages("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE,"
    " sandbox INTEGER NOT NULL REFERENCES sandboxes(id) ON DELETE CASCADE,"
    " text TEXT NOT NULL, state TEXT NOT NULL, error TEXT, createdAt INTEGER NOT NULL,"
    " sentAt INTEGER NOT NULL DEFAULT 0, deliveredAt INTEGER NOT NULL DEFAULT 0,"
    " claimOwner TEXT, claimUntil INTEGER NOT NULL DEFAULT 0,"
    " claimTtl INTEGER NOT NULL DEFAULT 0);"
    "CREATE INDEX sandboxMessagesByState ON sandboxMessages(sandbox, state);"

    "CREATE TABLE runs("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " sandbox INTEGER NOT NULL REFERENCES sandboxes(id) ON DELETE CASCADE,"
    " session TEXT NOT NULL, epoch INTEGER NOT NULL, stored INTEGER NOT NULL DEFAULT 0,"
    " rawBytes INTEGER NOT NULL DEFAULT 0, turnOffset INTEGER NOT NULL DEFAULT 0,"
    " turnLine INTEGER NOT NULL DEFAULT 0, exitCode INTEGER NOT NULL DEFAULT -1,"
    " exitSignal INTEGER NOT NULL DEFAULT 0, ended INTEGER NOT NULL DEFAULT 0,"
    " startedAt INTEGER NOT NULL, endedAt INTEGER NOT NULL DEFAULT 0,"
    " UNIQUE(sandbox, session, epoch));"

    /* the two below have no foreign key: it is looked up for each row, and whoever writes
     * or deletes them has the run in hand */
    "CREATE TABLE rawChunks("
    " id INTEGER PRIMARY KEY,"
    " run INTEGER NOT NULL, offset INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE(run, offset));"

    /* its key is its place: one tree, written at its end */
    "CREATE TABLE agentEvents("
    " run INTEGER NOT NULL, offset INTEGER NOT NULL, idx INTEGER NOT NULL, json TEXT NOT NULL,"
    " PRIMARY KEY(run, offset, idx)) WITHOUT ROWID;"

    "CREATE TABLE events("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, timeMs INTEGER NOT NULL, level INTEGER NOT NULL,"
    " sandbox INTEGER NOT NULL, text TEXT NOT NULL);"

    "CREATE TABLE leases("
    " name TEXT PRIMARY KEY, owner TEXT NOT NULL, until INTEGER NOT NULL, ttl INTEGER NOT "
    "NULL);"

    "CREATE TABLE killIntents("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, timeMs INTEGER NOT NULL, account INTEGER NOT NULL,"
    " project TEXT, target TEXT);";

/* Keys. A project's id outlives its name, as sealed keys are bound to it. */
static const char keys[] =
    "CREATE TABLE projects("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE,"
    " name TEXT NOT NULL UNIQUE, createdAt INTEGER NOT NULL);"

    "CREATE TABLE projectFolders("
    " project TEXT NOT NULL REFERENCES projects(uid) ON DELETE CASCADE,"
    " folder TEXT NOT NULL, PRIMARY KEY(project, folder)) WITHOUT ROWID;"

    "CREATE TABLE vault("
    " id INTEGER PRIMARY KEY CHECK(id = 1), uid TEXT NOT NULL, revision INTEGER NOT NULL,"
    " protection TEXT NOT NULL, proof BLOB NOT NULL, opsLimit INTEGER NOT NULL,"
    " memLimit INTEGER NOT NULL, salt BLOB, sealed BLOB);"

    "CREATE TABLE apiKeys("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, provider TEXT NOT NULL, api TEXT NOT NULL,"
    " mark TEXT NOT NULL, lastFour TEXT NOT NULL, version INTEGER NOT NULL, sealed BLOB NOT "
    "NULL,"
    " createdAt INTEGER NOT NULL, UNIQUE(provider, api));"

    "CREATE TABLE projectProviderKeys("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " project TEXT NOT NULL REFERENCES projects(uid) ON DELETE CASCADE,"
    " provider TEXT NOT NULL, api TEXT NOT NULL,"
    " mark TEXT NOT NULL, lastFour TEXT NOT NULL, version INTEGER NOT NULL, sealed BLOB NOT "
    "NULL,"
    " createdAt INTEGER NOT NULL, UNIQUE(project, provider, api));";

/* What is put in front of the queue ("send now"). */
static const char urgent[] =
    "ALTER TABLE sandboxMessages ADD COLUMN urgent INTEGER NOT NULL DEFAULT 0;";

static const char branch[] = "ALTER TABLE sandboxes ADD COLUMN branch TEXT;";

/* What was said, and where; the queue: places of events that are not in the index yet, idx
 * -1: a whole run. `place` is the sandbox as a word. */
static const char search[] =
    "CREATE TABLE searchDocs("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, run INTEGER NOT NULL, offset INTEGER NOT NULL,"
    " idx INTEGER NOT NULL, sandbox INTEGER NOT NULL, timeMs INTEGER NOT NULL,"
    " who TEXT NOT NULL, place TEXT NOT NULL, text TEXT NOT NULL, UNIQUE(run, offset, idx));"
    "CREATE VIRTUAL TABLE searchText USING fts5(text, place, content='searchDocs',"
    " content_rowid='id', tokenize=\"unicode61 remove_diacritics 2\", prefix='2 3');"
    "CREATE TABLE searchQueue("
    " id INTEGER PRIMARY KEY, run INTEGER NOT NULL, offset INTEGER NOT NULL,"
    " idx INTEGER NOT NULL);"
    "INSERT INTO searchQueue(run, offset, idx)"
    " SELECT id, 0, -1 FROM runs ORDER BY startedAt, id;";

/* Projects as people work in them. Every name that a sandbox of ours carries is a project;
 * a secret variable is sealed like a key. presets.project NULL: the user's. */
static const char projects[] =
    "ALTER TABLE projects ADD COLUMN usedAt INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE projects ADD COLUMN settings TEXT;"
    "INSERT OR IGNORE INTO projects(uid, name, createdAt)"
    " SELECT lower(hex(randomblob(16))), project, min(createdAt) FROM sandboxes"
    " WHERE project IS NOT NULL AND project<>'' AND isForeign<>1 GROUP BY project;"

    "CREATE TABLE projectVariables("
    " project TEXT NOT NULL REFERENCES projects(uid) ON DELETE CASCADE,"
    " name TEXT NOT NULL, value TEXT, mark TEXT, lastFour TEXT, version INTEGER, sealed BLOB,"
    " createdAt INTEGER NOT NULL, PRIMARY KEY(project, name)) WITHOUT ROWID;"

    "CREATE TABLE presets("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " project TEXT REFERENCES projects(uid) ON DELETE CASCADE,"
    " name TEXT NOT NULL, choice TEXT NOT NULL);"
    "CREATE UNIQUE INDEX presetsByName ON presets(ifnull(project, ''), name);"

    /* what has changed is told apart from what has not by a number */
    "CREATE TABLE counters(name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT INTO counters(name, n) VALUES('projects', 1);";

/* What was answered to an agent's question, which is an event of the run. */
static const char answers[] =
    "CREATE TABLE answers("
    " run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,"
    " offset INTEGER NOT NULL, idx INTEGER NOT NULL, choice INTEGER NOT NULL, text TEXT,"
    " createdAt INTEGER NOT NULL, sentAt INTEGER NOT NULL DEFAULT 0,"
    " PRIMARY KEY(run, offset, idx)) WITHOUT ROWID;";

/* Designer and checker at work in one sandbox. */
static const char pairs[] =
    "CREATE TABLE pairs("
    " sandbox INTEGER PRIMARY KEY REFERENCES sandboxes(id) ON DELETE CASCADE,"
    " uid TEXT NOT NULL, revision INTEGER NOT NULL, state TEXT NOT NULL, role TEXT NOT NULL,"
    " round INTEGER NOT NULL, rounds INTEGER NOT NULL, turn INTEGER NOT NULL,"
    " waiting INTEGER NOT NULL, asked INTEGER NOT NULL, ending INTEGER NOT NULL,"
    " cut INTEGER NOT NULL, reason TEXT,"
    " task TEXT, report TEXT, review TEXT);"

    "CREATE TABLE pairSides("
    " sandbox INTEGER NOT NULL REFERENCES sandboxes(id) ON DELETE CASCADE,"
    " role TEXT NOT NULL, tool TEXT NOT NULL, model TEXT, prompt TEXT, session TEXT,"
    " costUsd REAL, tokensIn INTEGER NOT NULL, tokensOut INTEGER NOT NULL,"
    " turns INTEGER NOT NULL, PRIMARY KEY(sandbox, role)) WITHOUT ROWID;";

/* The ledger. Its rows outlive the sandboxes and runs they tell of, so they hold what these
 * were called. usdPerS and costUsd NULL: unpriced. usageTurns.total: the count that it is the
 * growth of, and what comes after it grows from; NULL when nothing does. Turns stay for good,
 * beside their sums: a time that begins or ends within a half hour is summed turn by turn, where
 * days begin at a quarter of an hour every time is; a log that is read again counts twice what it
 * does not find here; and new sums of other places are made from them. */
static const char ledger[] =
    "CREATE TABLE usageSpans("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, sandboxId TEXT NOT NULL, account TEXT, name TEXT,"
    " project TEXT, tool TEXT, template TEXT, cpuCount INTEGER NOT NULL,"
    " memoryMb INTEGER NOT NULL, startedAt INTEGER NOT NULL, endedAt INTEGER NOT NULL,"
    " how INTEGER NOT NULL, estimate INTEGER NOT NULL, usdPerS REAL, rateDate TEXT,"
    " UNIQUE(sandboxId, startedAt));"
    "CREATE INDEX usageSpansByEnd ON usageSpans(endedAt);"

    "CREATE TABLE usageTurns("
    " run INTEGER NOT NULL, offset INTEGER NOT NULL, idx INTEGER NOT NULL,"
    " sandbox INTEGER NOT NULL, sandboxId TEXT, name TEXT, project TEXT, tool TEXT,"
    " template TEXT, role TEXT NOT NULL, total TEXT, model TEXT, timeMs INTEGER NOT NULL,"
    " inTokens INTEGER NOT NULL, cacheRead INTEGER NOT NULL, cacheWrite INTEGER NOT NULL,"
    " outTokens INTEGER NOT NULL, costUsd REAL, rateDate TEXT,"
    " PRIMARY KEY(run, offset, idx)) WITHOUT ROWID;"
    "CREATE INDEX usageTurnsByTime ON usageTurns(timeMs);"
    "CREATE INDEX usageTurnsByTotal ON usageTurns(sandbox, total, role) WHERE total IS NOT NULL;";

/* What was told of budgets, once for all instances. usageSpans.settled: the service was asked
 * how that run went, and has no more to say. */
static const char budgets[] =
    "CREATE TABLE budgetNotes("
    " period TEXT NOT NULL, begin INTEGER NOT NULL, project TEXT NOT NULL, pct INTEGER NOT NULL,"
    " PRIMARY KEY(period, begin, project, pct)) WITHOUT ROWID;"
    "ALTER TABLE usageSpans ADD COLUMN settled INTEGER NOT NULL DEFAULT 0;";

/* How to start the agent of a sandbox that is being made: kept until it runs, so that
 * whoever comes next goes on. */
static const char starts[] =
    "CREATE TABLE starts("
    " sandbox INTEGER PRIMARY KEY REFERENCES sandboxes(id) ON DELETE CASCADE,"
    " recipe TEXT NOT NULL);";

/* Builds of templates that were begun here. recipe NULL: the tool's own. */
static const char builds[] =
    "CREATE TABLE templateBuilds("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, toolId TEXT, templateName TEXT NOT NULL,"
    " cliVersion TEXT, status TEXT NOT NULL, error TEXT, templateId TEXT, buildId TEXT,"
    " project TEXT, account TEXT, recipe TEXT, options TEXT, phase TEXT, title TEXT, tail TEXT,"
    " startedAt INTEGER NOT NULL, endedAt INTEGER NOT NULL, step INTEGER NOT NULL,"
    " steps INTEGER NOT NULL, cached INTEGER NOT NULL);";

/* The user's words for a sandbox, a space between them. */
static const char tags[] = "ALTER TABLE sandboxes ADD COLUMN tags TEXT;";

/* The few events of a run that sums are made of: a long one is not read for them from its
 * begin to its end. */
static const char summed[] = "CREATE INDEX agentEventsSummed ON agentEvents(run, offset, idx)"
                             " WHERE " STORE_SUMMED ";";

/* Lines of plain text, whose bytes are in the raw chunks anyway: so many of them from the
 * row's offset on are whole lines, the first one's number; json has them where the chunks do
 * not, else it is empty. */
static const char span[] = "ALTER TABLE agentEvents ADD COLUMN span INTEGER;";
static const char span_line[] = "ALTER TABLE agentEvents ADD COLUMN line INTEGER;";

/* What turns come to in each half hour and in each of UTC's days (`slots` half hours): years of
 * them are summed in no time. Half hours begin with the hour in nearly all time zones. The
 * triggers keep it exact, whoever writes. */
#define PLACE(t)                                                                           \
    "coalesce(" t ".sandboxId, ''), coalesce(" t ".name, ''), coalesce(" t ".project, ''),"  \
    " coalesce(" t ".tool, ''), coalesce(" t ".template, ''), coalesce(" t ".model, '')"
#define AT_PLACE "(sandboxId, name, project, tool, template, model)"
#define KEY(t, slots)                                                                     \
    slots ", " t ".timeMs/(" STORE_SLOT_TEXT "*" slots "),"                                  \
    " (SELECT id FROM usagePlaces WHERE " AT_PLACE "=(" PLACE(t) "))"

static const char places[] =
    "CREATE TABLE usagePlaces("
    " id INTEGER PRIMARY KEY, sandboxId TEXT NOT NULL, name TEXT NOT NULL,"
    " project TEXT NOT NULL, tool TEXT NOT NULL, template TEXT NOT NULL, model TEXT NOT NULL,"
    " UNIQUE" AT_PLACE ");"
    "DROP TABLE IF EXISTS usageSums;" /* of other places */
    "INSERT OR IGNORE INTO usagePlaces" AT_PLACE " SELECT DISTINCT " PLACE("t")
    " FROM usageTurns t;";

#define MORE(slots)                                                                        \
    " INSERT INTO usageSums VALUES(" KEY("NEW", slots) ", NEW.inTokens, NEW.cacheRead,"      \
    "  NEW.cacheWrite, NEW.outTokens, coalesce(NEW.costUsd, 0), 1, NEW.costUsd IS NULL)"     \
    "  ON CONFLICT(slots, at, place) DO UPDATE SET inTokens=inTokens+excluded.inTokens,"      \
    "  cacheRead=cacheRead+excluded.cacheRead, cacheWrite=cacheWrite+excluded.cacheWrite,"    \
    "  outTokens=outTokens+excluded.outTokens, costUsd=costUsd+excluded.costUsd,"             \
    "  turns=turns+1, unpriced=unpriced+excluded.unpriced;"
#define LESS(slots)                                                                        \
    " UPDATE usageSums SET inTokens=inTokens-OLD.inTokens, cacheRead=cacheRead-OLD.cacheRead," \
    "  cacheWrite=cacheWrite-OLD.cacheWrite, outTokens=outTokens-OLD.outTokens,"              \
    "  costUsd=costUsd-coalesce(OLD.costUsd, 0), turns=turns-1,"                              \
    "  unpriced=unpriced-(OLD.costUsd IS NULL)"                                               \
    "  WHERE (slots, at, place)=(" KEY("OLD", slots) ");"                                     \
    " DELETE FROM usageSums WHERE (slots, at, place)=(" KEY("OLD", slots) ") AND turns=0;"

static const char sums[] =
    "CREATE TABLE usageSums("
    " slots INTEGER NOT NULL, at INTEGER NOT NULL, place INTEGER NOT NULL,"
    " inTokens INTEGER NOT NULL, cacheRead INTEGER NOT NULL, cacheWrite INTEGER NOT NULL,"
    " outTokens INTEGER NOT NULL, costUsd REAL NOT NULL, turns INTEGER NOT NULL,"
    " unpriced INTEGER NOT NULL, PRIMARY KEY(slots, at, place)) WITHOUT ROWID;"
    "INSERT INTO usageSums SELECT " KEY("t", "1") ", sum(inTokens), sum(cacheRead),"
    " sum(cacheWrite), sum(outTokens), total(costUsd), count(*), sum(costUsd IS NULL)"
    " FROM usageTurns t GROUP BY 1, 2, 3;"
    "INSERT INTO usageSums SELECT " STORE_DAY_TEXT ", at/" STORE_DAY_TEXT ", place, sum(inTokens),"
    " sum(cacheRead), sum(cacheWrite), sum(outTokens), sum(costUsd), sum(turns), sum(unpriced)"
    " FROM usageSums GROUP BY 1, 2, 3;"
    "DROP TRIGGER IF EXISTS usageTurnsMore;"
    "CREATE TRIGGER usageTurnsMore AFTER INSERT ON usageTurns BEGIN"
    " INSERT OR IGNORE INTO usagePlaces" AT_PLACE " VALUES(" PLACE("NEW") ");"
    MORE("1") MORE(STORE_DAY_TEXT) " END;"
    "DROP TRIGGER IF EXISTS usageTurnsLess;"
    "CREATE TRIGGER usageTurnsLess AFTER DELETE ON usageTurns BEGIN"
    LESS("1") LESS(STORE_DAY_TEXT) " END;";

static const char open_spans[] =
    "CREATE INDEX usageSpansOpen ON usageSpans(id) WHERE how=0;";

/* Arguments of builds: their names; there were values, too. */
static const char arguments[] =
    "CREATE INDEX templateBuildsByName ON templateBuilds(account, templateName, id);"
    "UPDATE templateBuilds SET options=CASE WHEN json_valid(options) THEN"
    " json_set(options, '$.args', json((SELECT json_group_array(key) FROM"
    "  json_each(templateBuilds.options, '$.args')))) END"
    " WHERE options IS NOT NULL AND"
    " (NOT json_valid(options) OR json_type(options, '$.args')='object');";

/* What the list is narrowed to, under a name. */
static const char filters[] =
    "CREATE TABLE filters("
    " name TEXT PRIMARY KEY, words TEXT NOT NULL, createdAt INTEGER NOT NULL) WITHOUT ROWID;";

/* A step has a part for each topic. */
static const char *const steps[STORE_SCHEMA][STORE_STEP_PARTS + 1] = {
    {first}, {keys}, {urgent, branch, search, projects, answers, pairs, ledger},
    {budgets, starts, builds, tags, summed},
    {span, span_line, places, sums, open_spans, arguments, filters}};

const char *const *store_step(int64_t version)
{
    return steps[version];
}

const char *const store_tables[] = {
    "sandboxes",      "sandboxMessages", "runs",        "rawChunks",
    "agentEvents",    "events",          "leases",      "killIntents",
    "projects",       "vault",           "apiKeys",     "projectProviderKeys",
    "projectFolders", "searchDocs",      "searchQueue", "projectVariables",
    "presets",        "counters",        "answers",     "pairs",
    "pairSides",      "usageSpans",  "usageTurns",  "budgetNotes",
    "starts",         "templateBuilds", "usagePlaces", "usageSums",
    "filters",        NULL};
