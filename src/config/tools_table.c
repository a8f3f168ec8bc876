/* The tools that are compiled in, their adapters, and the providers of keys. */
#include "tools_priv.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

const struct tool_provider_row tool_providers[] = {
    {TOOL_ANTHROPIC, "anthropic", {"ANTHROPIC_API_KEY", NULL}},
    {TOOL_ANTHROPIC_TOKEN, "anthropic_token", {"CLAUDE_CODE_OAUTH_TOKEN", NULL}},
    {TOOL_OPENAI, "openai", {"OPENAI_API_KEY", "CODEX_API_KEY"}},
    {TOOL_OPENROUTER, "openrouter", {"OPENROUTER_API_KEY", NULL}},
    {TOOL_GITHUB, "github", {"GITHUB_TOKEN", "GH_TOKEN"}},
};
const size_t tool_n_providers = COUNT(tool_providers);

const struct tool_adapter_row tool_adapters[] = {
    {"claude", TOOL_PERSISTENT},
    {"codex", TOOL_ONE_RUN},
    {"opencode", TOOL_ONE_RUN},
    {"opencode-serve", TOOL_PERSISTENT},
    {"pi", TOOL_RPC},
    {"pi-json", TOOL_ONE_RUN},
    {"gemini", TOOL_ONE_RUN},
    {"qwen", TOOL_ONE_RUN},
    {"shell", TOOL_PERSISTENT},
    {"pair", TOOL_ONE_RUN},
};
const size_t tool_n_adapters = COUNT(tool_adapters);

/* No tool asks by default: the sandbox is the border. IS_SANDBOX lets claude do so as
 * root as well. claude, opencode and pi choose for themselves, the last two by the key that
 * they find: each version has a catalogue of its own and ends on a name that is not in it.
 * codex, gemini and qwen hand any name on to the service, and their prices come from it
 * alone, so they are told which one to take. */
#define CLAUDE                                                                    \
    "claude -p --input-format stream-json --output-format stream-json --verbose " \
    "--include-partial-messages --replay-user-messages "

const struct tool_row tool_rows[] = {
    {.name = "claude",
     .label = "Claude Code",
     .adapter = "claude",
     .template_id = "claude",
     .command = CLAUDE "--dangerously-skip-permissions",
     .ask_command = CLAUDE "--permission-prompt-tool stdio",
     .env = {"IS_SANDBOX=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1",
             "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
             "CLAUDE_CODE_MAX_RETRIES=3"},
     .needs = TOOL_ANTHROPIC | TOOL_ANTHROPIC_TOKEN,
     .resume = "--resume",
     .model_flag = "--model",
     .models = "anthropic",
     .prompt_flag = "--append-system-prompt-file",
     .prompt_file = ".claude/CLAUDE.md",
     .skills_dir = ".claude/skills"},
    {.name = "codex",
     .label = "Codex",
     .adapter = "codex",
     .template_id = "codex",
     .command = "codex exec --json --dangerously-bypass-approvals-and-sandbox "
                "--skip-git-repo-check -c check_for_update_on_startup=false "
                "-c analytics.enabled=false -",
     .needs = TOOL_OPENAI,
     .resume = "exec resume",
     .model_flag = "-m",
     .model = "gpt-6.2-sol",
     .models = "openai",
     .prompt_file = ".codex/AGENTS.md",
     .skills_dir = ".codex/skills"},
    {.name = "opencode",
     .label = "OpenCode",
     .adapter = "opencode",
     .template_id = "opencode",
     .command = "opencode run --format json --auto",
     .env = {"OPENCODE_DISABLE_AUTOUPDATE=1"},
     .needs = TOOL_OPENROUTER | TOOL_ANTHROPIC | TOOL_OPENAI,
     .resume = "--session",
     .model_flag = "-m",
     .models = "openrouter anthropic openai",
     .prompt_file = ".config/opencode/AGENTS.md",
     .skills_dir = ".config/opencode/skills",
     .qualified = true},
    /* the driver is ours: it runs `opencode serve` in the sandbox, and needs curl there */
    {.name = "opencode-serve",
     .label = "OpenCode, live",
     .adapter = "opencode-serve",
     .template_id = "opencode",
     .command = "opencode-driver",
     .ask_command = "opencode-driver --ask",
     .env = {"OPENCODE_DISABLE_AUTOUPDATE=1"},
     .needs = TOOL_OPENROUTER | TOOL_ANTHROPIC | TOOL_OPENAI,
     .resume = "--session",
     .model_flag = "--model",
     .models = "openrouter anthropic openai",
     .prompt_file = ".config/opencode/AGENTS.md",
     .skills_dir = ".config/opencode/skills",
     .qualified = true},
    {.name = "pi",
     .label = "Pi",
     .adapter = "pi",
     .template_id = "pi",
     .command = "pi --mode rpc",
     .env = {"PI_OFFLINE=1", "PI_TELEMETRY=0"},
     .needs = TOOL_OPENROUTER | TOOL_ANTHROPIC | TOOL_OPENAI,
     .resume = "--session",
     .model_flag = "--model",
     .models = "openrouter anthropic openai",
     .prompt_flag = "--append-system-prompt",
     .prompt_file = ".pi/agent/AGENTS.md",
     .skills_dir = ".pi/agent/skills",
     .qualified = true},
    /* its key belongs to no provider that is kept here; the others stand for accounts of the
     * cloud */
    {.name = "gemini",
     .label = "Gemini CLI",
     .adapter = "gemini",
     .template_id = "gemini",
     .command = "gemini -o stream-json --approval-mode yolo --skip-trust",
     .needs_env = "GEMINI_API_KEY GOOGLE_GENAI_USE_VERTEXAI GOOGLE_GENAI_USE_GCA",
     .resume = "--resume",
     .model_flag = "-m",
     .model = "gemini-3.8-flash",
     .models = "google",
     .prompt_file = ".gemini/GEMINI.md",
     .skills_dir = ".gemini/skills"},
    {.name = "qwen",
     .label = "Qwen Code",
     .adapter = "qwen",
     .template_id = "qwen",
     .command = "qwen -o stream-json --include-partial-messages --approval-mode yolo "
                "--auth-type openai",
     .needs = TOOL_OPENAI,
     .resume = "--resume",
     .model_flag = "--model",
     .model = "gpt-6.2-sol",
     .models = "openai",
     .prompt_file = ".qwen/QWEN.md",
     .skills_dir = ".qwen/skills"},
    {.name = "shell",
     .label = "Shell",
     .adapter = "shell",
     .template_id = "base",
     .command = "sh"},
    {.name = "demo",
     .label = "Demo agent",
     .adapter = "claude",
     .template_id = "demo",
     .command = "demo-agent",
     .ask_command = "demo-agent --permission-prompt-tool stdio",
     .local_only = true},
    /* several agents in one sandbox; each turn has a command of its own, this is none */
    {.name = "pair",
     .label = "Designer and checker",
     .adapter = "pair",
     .template_id = "base",
     .command = "false"},
};
const size_t tool_n_rows = COUNT(tool_rows);

/* The keys of tools.conf; the page of the manual comes from them. */
static const struct {
    const char *key, *help;
} keys[] = {
    {"label", "what it is called in sentences"},
    {"adapter", "how its stream is read: claude, codex, opencode, opencode-serve, pi, pi-json, "
                "gemini, qwen, shell"},
    {"template", "template of its sandboxes"},
    {"command", "its command line; quotes and backslashes as in a shell, nothing is expanded"},
    {"ask_command", "takes the place of command with ask = yes"},
    {"ask", "yes: its permission questions come to you; no"},
    {"timeout", "of its sandboxes, such as 90, 15m or 2h"},
    {"needs", "providers of keys, any one of which is enough: anthropic, anthropic_token, openai, "
              "openrouter, github; none"},
    {"needs_env", "variables, any one of which is enough, for keys of other providers (GEMINI_API_KEY, "
                  "DASHSCOPE_API_KEY): of the project, by --env or --env-file, or of cc-tui's own "
                  "environment, out of which they are taken and handed on; none"},
    {"env.NAME", "a variable that its sandboxes get; no key, as the file is no place for one"},
    {"resume", "the flag in front of the id of its own session, or two words: the second stands "
               "behind the first, the id at the end"},
    {"model_flag", "the flag in front of the model"},
    {"model", "the model when none is said; none: its own choice"},
    {"models", "providers whose models can be chosen"},
    {"model_names", "qualified: models are called PROVIDER/NAME; plain: NAME"},
    {"prompt_flag", "the flag in front of the path of a file with the system prompt"},
    {"prompt_file", "or the file below home that it reads by itself"},
    {"skills", "the folder below home with its skills"},
};

const char *tools_key(size_t i, const char **help)
{
    if (i >= COUNT(keys))
        return NULL;
    if (help)
        *help = keys[i].help;
    return keys[i].key;
}
