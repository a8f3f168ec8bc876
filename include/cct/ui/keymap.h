/* Actions and keys, declared once: enum, config names, default keys, scopes and help
 * texts come from ACTIONS; help screen, hint bar, palette and README are drawn from
 * it. */
#ifndef CCT_UI_KEYMAP_H
#define CCT_UI_KEYMAP_H

#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Scopes: where a key counts. A key may appear once in a scope and the one whose keys count
 * there as well (tested).
 * X(ID, "in tables", "in the help", the scope whose keys count there as well, or NONE). */
#define SCOPES(X)                                                                              \
    X(NAV, "everywhere", "EVERYWHERE", NONE)                                                   \
    X(LIST, "list", "SANDBOX LIST", NAV)                                                       \
    X(OUTPUT, "output", "OUTPUT", NAV)                                                         \
    X(REPLAY, "replay", "REPLAY", OUTPUT) /* stands in front of the output's keys */          \
    X(SELECT, "selection", "SELECTION", NAV)                                                   \
    X(PROCS, "processes", "PROCESSES", NAV)                                                    \
    X(BUILDS, "builds", "BUILDS", NAV)                                                         \
    X(BUILD_LOG, "build log", "BUILD LOG", NAV)                                                \
    X(USAGE, "usage", "USAGE", NAV)                                                            \
    X(WALL, "wall", "WALL", LIST) /* its digits are tiles, not panes */                        \
    X(FILES, "files", "FILES", NAV)                                                            \
    X(CHANGES, "changes", "CHANGES", NAV)                                                      \
    X(LINE, "text lines", "EVERY LINE OF TEXT", NONE)                                          \
    X(INPUT, "input", "CHAT INPUT", LINE)                                                      \
    X(ASK, "asked lines", "FILTER, SEARCH, PALETTE, NAMES", LINE)                              \
    X(FORM, "forms", "FORMS", LINE)                                                            \
    X(CHOICE, "choices", "CHOICES IN FORMS", FORM)                                             \
    X(RECEIVERS, "receivers", "RECEIVERS OF A BROADCAST", CHOICE)                              \
    X(DIALOG, "boxes", "BOXES", NONE)                                                          \
    X(CONFIRM, "questions", "QUESTIONS, AND HOW IT WENT", DIALOG)                              \
    X(ANSWER, "answers", "AN AGENT'S QUESTION", DIALOG)                                        \
    X(PAIR, "pairs", "A PAIR AT WORK", DIALOG)                                                 \
    X(KEYRING, "service keys", "KEYS OF THE SERVICES", DIALOG)                                 \
    X(PROJECTS, "projects", "PROJECTS", DIALOG)                                                \
    X(VARS, "variables", "VARIABLES OF A PROJECT", DIALOG)

enum key_scope {
#define SCOPE_ENUM(id, word, head, under) SCOPE_##id,
    SCOPES(SCOPE_ENUM)
#undef SCOPE_ENUM
        SCOPE_COUNT,
    SCOPE_NONE = SCOPE_COUNT
};
const char *scope_word(enum key_scope s);
const char *scope_head(enum key_scope s);
enum key_scope scope_under(enum key_scope s); /* whose keys count there as well, or SCOPE_NONE */
/* Do the keys of `other` count in s? */
bool scope_counts(enum key_scope s, enum key_scope other);

/* X(ID, "config-name", SCOPE, "default keys", "short hint", "help text").
 * Keys are written as in the config: j, Down, ^D, Alt-a, Enter, Esc, F1, Space, gg, ^X^E. */
#define ACTIONS(X)                                                                             \
    X(DOWN, "down", SCOPE_NAV, "j Down", "", "next row or line")                               \
    X(UP, "up", SCOPE_NAV, "k Up", "", "previous row or line")                                 \
    X(TOP, "top", SCOPE_NAV, "gg Home", "", "first row or line")                               \
    X(BOTTOM, "bottom", SCOPE_NAV, "G End", "", "last row or line")                            \
    X(HALF_DOWN, "half-down", SCOPE_NAV, "^D", "", "half a page down")                         \
    X(HALF_UP, "half-up", SCOPE_NAV, "^U", "", "half a page up")                               \
    X(PAGE_DOWN, "page-down", SCOPE_NAV, "PgDn ^F", "", "page down")                           \
    X(PAGE_UP, "page-up", SCOPE_NAV, "PgUp ^B", "", "page up")                                 \
    X(PANE_LIST, "pane-list", SCOPE_NAV, "1", "list", "go to the list")                        \
    X(PANE_OUTPUT, "pane-output", SCOPE_NAV, "2", "output", "go to the output")                \
    X(PANE_BUILDS, "pane-builds", SCOPE_NAV, "3", "builds",                                    \
      "builds: templates, how they come to be, and back")                                      \
    X(PANE_USAGE, "pane-usage", SCOPE_NAV, "4", "usage", "usage: what it costs, and back")     \
    X(PANE_EVENTS, "pane-events", SCOPE_NAV, "5", "", "go to the events")                      \
    X(WALL, "wall", SCOPE_NAV, "W", "wall",                                                    \
      "wall: the last lines of up to nine sandboxes, and back")                                \
    X(NEXT_PANE, "next-pane", SCOPE_NAV, "Tab", "", "next pane")                               \
    X(PREV_PANE, "prev-pane", SCOPE_NAV, "BackTab", "", "previous pane")                       \
    X(ZOOM, "zoom", SCOPE_NAV, "f + _", "zoom", "zoom the pane, and back")                     \
    X(NEXT_ASKING, "next-asking", SCOPE_NAV, "] Alt-a", "next asking",                         \
      "next sandbox that asks you")                                                            \
    X(PREV_ASKING, "prev-asking", SCOPE_NAV, "[", "", "previous sandbox that asks you")        \
    X(LAST_SANDBOX, "last-sandbox", SCOPE_NAV, "-", "", "back to the last sandbox")            \
    X(SEARCH, "search", SCOPE_NAV, "/", "/ find", "filter the list, search the output")        \
    X(SEARCH_ALL, "search-all", SCOPE_NAV, "g/", "", "search all that was ever said")          \
    X(PROJECTS, "projects", SCOPE_NAV, "gp", "", "projects: switch, see all, make, rename")    \
    X(KEYS, "keys", SCOPE_NAV, "gk", "", "keys of the services: add, try, remove; the vault")  \
    X(COMMAND, "command", SCOPE_NAV, ": ^P", ": cmd",                                          \
      "command palette: every action, sandboxes, projects, files, filters")                    \
    X(HELP, "help", SCOPE_NAV, "? F1", "help", "help, drawn from this table")                  \
    X(BACK, "back", SCOPE_NAV, "Esc", "", "close, clear the filter, back; never quits")        \
    X(BACK_TWICE, "back-twice", SCOPE_NAV, "^C", "", "back; twice within a second quits")      \
    X(QUIT, "quit", SCOPE_NAV, "q", "quit", "back one level; at the top quits")                \
    X(UNDO, "undo", SCOPE_NAV, "u", "", "call off a pending kill or message")                  \
    X(MOUSE, "mouse", SCOPE_NAV, "Alt-m", "", "mouse on or off (Shift-drag is the terminal's)")\
    X(REDRAW, "redraw", SCOPE_NAV, "^L", "", "draw the screen anew")                           \
    X(REFRESH, "refresh", SCOPE_NAV, "^R F5", "refresh", "ask the service for the list now")     \
    X(FREEZE, "freeze", SCOPE_NAV, "Z", "",                                                    \
      "freeze the picture, and go on; what comes meanwhile is kept")                           \
    X(BARE, "bare", SCOPE_NAV, "Alt-l", "",                                                    \
      "the output alone, without borders, to copy by the terminal; and back")                  \
    X(SUSPEND, "suspend", SCOPE_NAV, "^Z", "", "suspend to the shell")                         \
    X(NEW, "new", SCOPE_LIST, "n", "new", "new sandbox")                                        \
    X(NEW_PROMPT, "new-prompt", SCOPE_LIST, "N", "", "new sandbox, prompt field first")         \
    X(PAIR, "pair", SCOPE_NAV, "g2", "",                                                       \
      "two agents take turns: a new pair, or a word to this one")                              \
    X(INPUT, "input", SCOPE_NAV, "i", "type", "type to the agent")                             \
    X(ANSWER, "answer", SCOPE_NAV, "a", "answer", "answer the agent's question")               \
    X(INTERRUPT, "interrupt", SCOPE_NAV, "X", "", "interrupt the agent")                       \
    X(KILL, "kill", SCOPE_NAV, "D F9", "kill", "kill the sandbox (asks)")                      \
    X(KILL_ALL, "kill-all", SCOPE_NAV, "K", "kill all", "kill all sandboxes (asks)")           \
    X(PROCESSES, "processes", SCOPE_NAV, "o", "processes",                                     \
      "processes of the sandbox, and back to its output")                                      \
    X(SHELL, "shell", SCOPE_NAV, "s E", "shell",                                               \
      "a shell in the sandbox; the screen comes back when it ends or is left")                 \
    X(FILES, "files", SCOPE_NAV, "O", "files",                                                 \
      "files of the sandbox: look, download, upload")                                          \
    X(CHANGES, "changes", SCOPE_LIST, "v", "changes",                                          \
      "what the agent has changed: files and diff")                                            \
    X(ADOPT, "adopt", SCOPE_NAV, "A", "adopt",                                                 \
      "adopt a sandbox that cc-tui did not make; give it back")                                \
    X(MARK, "mark", SCOPE_LIST, "Space", "mark", "mark the sandbox, or unmark it")             \
    X(MARK_ALL, "mark-all", SCOPE_LIST, "*", "", "mark all that are shown")                    \
    X(UNMARK_ALL, "unmark-all", SCOPE_LIST, "U", "unmark", "unmark all")                       \
    X(BULK, "bulk", SCOPE_LIST, "b", "bulk", "do something to all that are marked; broadcast") \
    X(SET_TIME, "set-time", SCOPE_LIST, "t", "time", "set the time left")                      \
    X(OPEN, "open", SCOPE_LIST, "Enter", "open", "open the output zoomed")                     \
    X(DETAILS, "details", SCOPE_LIST, "d", "details", "show details")                          \
    X(PAUSE, "pause", SCOPE_LIST, "p", "", "pause")                                            \
    X(RESUME, "resume", SCOPE_LIST, "r", "", "resume; restart a dead agent")                   \
    X(PROTECT, "protect", SCOPE_LIST, "P", "", "protect from kill-all, on or off")             \
    X(RENAME, "rename", SCOPE_LIST, "R", "", "rename")                                         \
    X(TAG, "tag", SCOPE_LIST, "T", "", "tags: words of yours for it, to filter by")            \
    X(FORGET, "forget", SCOPE_LIST, "Delete", "", "take an ended row off the list")            \
    X(COPY_ID, "copy-id", SCOPE_LIST, "c yy", "", "copy the sandbox's id")                     \
    X(COPY_URL, "copy-url", SCOPE_LIST, "yu", "", "copy the address of its port 3000")         \
    X(SORT_PREV, "sort-prev", SCOPE_LIST, "<", "", "sort by the column before")                \
    X(SORT_NEXT, "sort-next", SCOPE_LIST, ">", "", "sort by the next column")                  \
    X(SORT_INVERT, "sort-invert", SCOPE_LIST, "I", "", "sort the other way round")             \
    X(SORT_MENU, "sort-menu", SCOPE_LIST, "S", "", "which column to sort by")                  \
    X(SEARCH_NEXT, "search-next", SCOPE_OUTPUT, "n", "", "next match")                         \
    X(SEARCH_PREV, "search-prev", SCOPE_OUTPUT, "N", "", "previous match")                     \
    X(FOLLOW, "follow", SCOPE_OUTPUT, "F", "follow", "follow new output, on or off")           \
    X(WRAP, "wrap", SCOPE_OUTPUT, "w", "", "wrap long lines, on or off")                       \
    X(TIMES, "times", SCOPE_OUTPUT, "t", "", "time stamps, on or off")                         \
    X(EXPORT, "export", SCOPE_OUTPUT, "e", "",                                                 \
      "write the transcript to a Markdown file in the current folder")                         \
    X(RAW, "raw", SCOPE_OUTPUT, "V", "", "raw view of the stream")                             \
    X(FOLD, "fold", SCOPE_OUTPUT, "Enter za", "fold", "fold or unfold here")                   \
    X(FOLD_ALL, "fold-all", SCOPE_OUTPUT, "zM", "", "fold everything")                         \
    X(UNFOLD_ALL, "unfold-all", SCOPE_OUTPUT, "zR", "", "unfold everything")                   \
    X(NEXT_MSG, "next-message", SCOPE_OUTPUT, "}", "", "next message")                         \
    X(PREV_MSG, "prev-message", SCOPE_OUTPUT, "{", "", "previous message")                     \
    X(PAN_LEFT, "pan-left", SCOPE_OUTPUT, "h Left", "", "pan left (unwrapped)")                \
    X(PAN_RIGHT, "pan-right", SCOPE_OUTPUT, "l Right", "", "pan right (unwrapped)")            \
    X(PLAY, "play", SCOPE_REPLAY, "Space", "play", "play, pause, at its end play again") \
    X(FASTER, "faster", SCOPE_REPLAY, "+ =", "faster", "play twice as fast, at last at once")   \
    X(SLOWER, "slower", SCOPE_REPLAY, "-", "slower", "play half as fast")                      \
    X(SKIP_ON, "skip-on", SCOPE_REPLAY, "Right", "on",                                         \
      "10 seconds on, at least to what comes next")                                            \
    X(SKIP_BACK, "skip-back", SCOPE_REPLAY, "Left", "back",                                    \
      "10 seconds back, at least to what came before")                                         \
    X(SELECT, "select", SCOPE_OUTPUT, "v", "", "select lines, to be copied")                   \
    X(COPY_CODE, "copy-code", SCOPE_OUTPUT, "yc", "", "copy the nearest block of code")        \
    X(COPY_MESSAGE, "copy-message", SCOPE_OUTPUT, "ym", "",                                    \
      "copy the agent's last message")                                                         \
    X(COPY_ALL, "copy-all", SCOPE_OUTPUT, "ya", "", "copy the whole transcript")               \
    X(COPY_LINES, "copy-lines", SCOPE_SELECT, "y", "copy", "copy the selected lines")          \
    X(SELECT_END, "select-end", SCOPE_SELECT, "v", "leave", "leave the selection")             \
    X(PROC_WATCH, "process-watch", SCOPE_PROCS, "Enter", "watch",                              \
      "watch what the process puts out")                                                       \
    X(PROC_END, "process-end", SCOPE_PROCS, "t", "end", "end the process (asks)")              \
    X(BUILD_USE, "build-use", SCOPE_BUILDS, "Enter", "new sandbox", "new sandbox from the template") \
    X(BUILD_NEW, "build-new", SCOPE_BUILDS, "n", "new build",                                  \
      "new build: from a folder, a Dockerfile, or a tool's recipe")                            \
    X(BUILD_AGAIN, "build-again", SCOPE_BUILDS, "R", "rebuild", "build it once more, from its recipe") \
    X(BUILD_CANCEL, "build-cancel", SCOPE_BUILDS, "C", "cancel", "call the build off")         \
    X(BUILD_DELETE, "build-delete", SCOPE_BUILDS, "Delete", "",                                \
      "delete the template (asks); D does the same here")                                      \
    X(BUILD_EXPORT, "build-export", SCOPE_BUILDS, "e", "export log",                           \
      "write the log to a file in the current folder")                                         \
    X(BUILD_FOLLOW, "build-follow", SCOPE_BUILD_LOG, "F", "follow", "go on with what comes")   \
    X(BUILD_LEVEL, "build-level", SCOPE_BUILD_LOG, "L", "level",                               \
      "all lines, or warnings and errors alone")                                               \
    X(BUILD_FIND_PREV, "build-find-earlier", SCOPE_BUILD_LOG, "N", "", "earlier match")        \
    X(BUILD_FIND_NEXT, "build-find-later", SCOPE_BUILD_LOG, "n", "", "later match")            \
    X(BUILD_LOG_EXPORT, "build-log-export", SCOPE_BUILD_LOG, "e", "export log",                \
      "write the log to a file in the current folder")                                         \
    X(USAGE_SHORTER, "usage-shorter", SCOPE_USAGE, "<", "", "month, week, day")                \
    X(USAGE_LONGER, "usage-longer", SCOPE_USAGE, ">", "range", "day, week, month, all")        \
    X(USAGE_NEXT, "usage-next-table", SCOPE_USAGE, "l Right", "tables",                        \
      "next table at the left: project, agent, model, template, sandbox")                      \
    X(USAGE_PREV, "usage-prev-table", SCOPE_USAGE, "h Left", "", "previous table at the left") \
    X(USAGE_PAUSE, "usage-pause", SCOPE_USAGE, "p", "pause idle",                              \
      "pause the sandbox that is named as idle but running")                                   \
    X(USAGE_HIDE, "usage-hide", SCOPE_USAGE, "x", "", "leave it out of the idle ones for an hour") \
    X(USAGE_EXPORT, "usage-export", SCOPE_USAGE, "e", "export csv",                            \
      "write the sums to a CSV file in the current folder")                                    \
    X(TILE, "tile", SCOPE_WALL, "1 2 3 4 5 6 7 8 9", "", "choose the tile")                    \
    X(TILE_LEFT, "tile-left", SCOPE_WALL, "h Left", "", "tile to the left")                    \
    X(TILE_RIGHT, "tile-right", SCOPE_WALL, "l Right", "", "tile to the right")                \
    X(FILE_OPEN, "file-open", SCOPE_FILES, "Enter l Right", "open",                            \
      "open the folder, show the file")                                                        \
    X(FILE_UP, "file-up", SCOPE_FILES, "h Left Backspace", "up", "the folder above; from a file back to the list") \
    X(FILE_GET, "file-get", SCOPE_FILES, "d", "download", "download it, asks where to")  \
    X(FILE_PUT, "file-put", SCOPE_FILES, "p", "upload", "upload a file or a folder into this one") \
    X(FILE_MKDIR, "file-mkdir", SCOPE_FILES, "m", "folder", "make a folder")                   \
    X(FILE_RENAME, "file-rename", SCOPE_FILES, "R", "rename", "rename or move")                \
    X(FILE_DELETE, "file-delete", SCOPE_FILES, "Delete x", "delete", "delete it (asks)")       \
    X(FILE_DOTS, "file-dots", SCOPE_FILES, ".", "", "names that begin with a dot, shown or not") \
    X(FILE_AGAIN, "file-again", SCOPE_FILES, "r", "", "read the folder again")                 \
    X(FILE_STOP, "file-stop", SCOPE_FILES, "c", "", "call off what is being downloaded or uploaded") \
    X(CHANGE_OPEN, "change-open", SCOPE_CHANGES, "Enter l Right", "open",                      \
      "to the diff of the file; of a new file, to the file")                                   \
    X(CHANGE_BACK, "change-back", SCOPE_CHANGES, "h Left", "back", "from the diff to the list") \
    X(CHANGES_AGAIN, "changes-again", SCOPE_CHANGES, "r", "again", "ask for the changes again") \
    X(SEND, "send", SCOPE_INPUT, "Enter", "send", "send the message")                          \
    X(SEND_NOW, "send-now", SCOPE_INPUT, "Alt-i", "",                                          \
      "interrupt the agent and send the message")                                              \
    X(COMPLETE, "complete", SCOPE_INPUT, "Tab", "",                                            \
      "complete @file; its text goes with the message")                                        \
    X(EDIT_MESSAGE, "edit-message", SCOPE_INPUT, "^X^E", "", "write on in $VISUAL or $EDITOR") \
    X(LEAVE, "leave", SCOPE_INPUT, "Esc", "leave", "leave, draft kept")                        \
    X(CLEAR, "clear", SCOPE_INPUT, "^C", "", "clear the input")                                \
    X(HIST_PREV, "history-prev", SCOPE_INPUT, "Up", "", "previous message or line up")         \
    X(HIST_NEXT, "history-next", SCOPE_INPUT, "Down", "", "next message or line down")         \
    X(HIST_FIND, "history-find", SCOPE_INPUT, "^R", "",                                        \
      "earlier message with what is written; once more: one before it")                        \
    X(INPUT_PGUP, "input-page-up", SCOPE_INPUT, "PgUp", "", "scroll the output up")            \
    X(INPUT_PGDN, "input-page-down", SCOPE_INPUT, "PgDn", "", "scroll the output down")        \
    X(EDIT_QUEUED, "edit-queued", SCOPE_INPUT, "Alt-q", "", "edit the queued message")         \
    X(CANCEL_QUEUED, "cancel-queued", SCOPE_INPUT, "Alt-x", "", "cancel the queued message")   \
    X(RESEND, "resend", SCOPE_INPUT, "Alt-r", "",                                              \
      "send a message again that failed or is unconfirmed")                                    \
    X(INPUT_ASKING, "input-next-asking", SCOPE_INPUT, "Alt-a", "",                             \
      "next sandbox that asks you")                                                            \
    X(INPUT_BARE, "input-bare", SCOPE_INPUT, "Alt-l", "",                                      \
      "the output alone, without borders, to copy by the terminal")                            \
    X(INPUT_COMMAND, "input-command", SCOPE_INPUT, "^P", "", "command palette")                \
    X(CHAR_LEFT, "char-left", SCOPE_LINE, "Left ^B", "", "one character to the left")          \
    X(CHAR_RIGHT, "char-right", SCOPE_LINE, "Right ^F", "", "one character to the right")      \
    X(WORD_LEFT, "word-left", SCOPE_LINE, "Alt-b", "", "one word to the left")                 \
    X(WORD_RIGHT, "word-right", SCOPE_LINE, "Alt-f", "", "one word to the right")              \
    X(LINE_BEGIN, "line-begin", SCOPE_LINE, "Home ^A", "", "begin of the line")                \
    X(LINE_END, "line-end", SCOPE_LINE, "End ^E", "", "end of the line")                       \
    X(ERASE, "erase", SCOPE_LINE, "Backspace ^H", "", "erase the character before the cursor") \
    X(ERASE_NEXT, "erase-next", SCOPE_LINE, "Delete ^D", "",                                   \
      "erase the character at the cursor")                                                     \
    X(CUT_WORD, "cut-word", SCOPE_LINE, "Alt-Backspace ^W", "",                                \
      "cut the word before the cursor")                                                        \
    X(CUT_NEXT_WORD, "cut-next-word", SCOPE_LINE, "Alt-d", "", "cut the word at the cursor")   \
    X(CUT_TO_BEGIN, "cut-to-begin", SCOPE_LINE, "^U", "", "cut all before the cursor")         \
    X(CUT_TO_END, "cut-to-end", SCOPE_LINE, "^K", "", "cut all behind the cursor")             \
    X(PUT_BACK, "put-back", SCOPE_LINE, "^Y", "", "put in what was cut last")                  \
    X(NEWLINE, "newline", SCOPE_LINE, "^J Alt-Enter", "newline",                               \
      "new line, where there can be several")                                                  \
    X(UNFOLD_PASTE, "unfold-paste", SCOPE_LINE, "Alt-p", "", "show what was pasted")           \
    X(TAKE_LINE, "take-line", SCOPE_ASK, "Enter", "",                                          \
      "take what is written, or what is pointed at")                                           \
    X(LEAVE_LINE, "leave-line", SCOPE_ASK, "Esc ^C", "", "leave it")                           \
    X(LINE_UP, "line-up", SCOPE_ASK, "Up ^P", "", "one row up; earlier ones")                  \
    X(LINE_DOWN, "line-down", SCOPE_ASK, "Down ^N", "", "one row down; later ones")            \
    X(LINE_PGUP, "line-page-up", SCOPE_ASK, "PgUp", "", "page up in what is offered")          \
    X(LINE_PGDN, "line-page-down", SCOPE_ASK, "PgDn", "", "page down in what is offered")      \
    X(LINE_TAB, "line-complete", SCOPE_ASK, "Tab", "",                                         \
      "complete; adopt with the process, or without")                                          \
    X(FIELD_NEXT, "field-next", SCOPE_FORM, "Tab Down", "next", "next field")                  \
    X(FIELD_PREV, "field-prev", SCOPE_FORM, "BackTab Up", "", "previous field")                \
    X(FIELD_ENTER, "field-enter", SCOPE_FORM, "Enter", "", "next field, or press the button")  \
    X(SUBMIT, "submit", SCOPE_FORM, "Alt-s", "do it", "do it, from any field")                 \
    X(EDIT_FIELD, "edit-field", SCOPE_FORM, "^X^E", "", "write on in $VISUAL or $EDITOR")      \
    X(FORM_CANCEL, "form-cancel", SCOPE_FORM, "Esc ^C", "cancel", "cancel")                    \
    X(PRESET_SAVE, "preset-save", SCOPE_FORM, "Alt-w", "", "keep the choices as a preset")     \
    X(PRESET_REMOVE, "preset-remove", SCOPE_FORM, "Alt-x", "",                                 \
      "remove the preset that is named")                                                       \
    X(CHOICE_PREV, "choice-prev", SCOPE_CHOICE, "Left", "", "previous choice")                 \
    X(CHOICE_NEXT, "choice-next", SCOPE_CHOICE, "Space Right", "",                             \
      "next choice; choose, or not, who gets a broadcast")                                     \
    X(RECEIVER_DOWN, "receiver-down", SCOPE_RECEIVERS, "j Down", "",                           \
      "next one; behind the last the next field")                                              \
    X(RECEIVER_UP, "receiver-up", SCOPE_RECEIVERS, "k Up", "",                                 \
      "previous one; before the first the previous field")                                     \
    X(RECEIVERS_NONE, "receivers-none", SCOPE_RECEIVERS, "U", "", "choose none")               \
    X(CLOSE, "close", SCOPE_DIALOG, "Esc q ^C", "", "close it, and leave what it asks about")  \
    X(BOX_DOWN, "box-down", SCOPE_DIALOG, "j Down", "", "next row, or scroll")                 \
    X(BOX_UP, "box-up", SCOPE_DIALOG, "k Up", "", "previous row, or scroll back")              \
    X(BOX_PGDN, "box-page-down", SCOPE_DIALOG, "PgDn Space", "", "page down")                  \
    X(BOX_PGUP, "box-page-up", SCOPE_DIALOG, "PgUp", "", "page up")                            \
    X(CHOOSE, "choose", SCOPE_DIALOG, "Enter", "", "take what is pointed at")                  \
    X(YES, "yes", SCOPE_CONFIRM, "y", "",                                                      \
      "yes: counts only as a key of its own, on a picture that was seen")                      \
    X(NO, "no", SCOPE_CONFIRM, "n", "", "no: leave it")                                        \
    X(RETRY, "retry", SCOPE_CONFIRM, "R", "", "try again what failed")                         \
    X(OTHER_SCOPE, "other-scope", SCOPE_CONFIRM, "Tab", "",                                    \
      "kill all of the project, or of the account")                                            \
    X(CALL_OFF, "call-off", SCOPE_CONFIRM, "u", "", "call off a kill-all that waits")          \
    X(END_AT_ONCE, "end-at-once", SCOPE_CONFIRM, "9", "", "end the process by SIGKILL")        \
    X(KEEP_PROCESS, "keep-process", SCOPE_CONFIRM, "p", "",                                    \
      "keep the process of an adopted sandbox")                                                \
    X(ANSWER_CHOICE, "answer-choice", SCOPE_ANSWER, "1 2 3 4 5 6 7 8 9", "",                   \
      "answer with this choice")                                                               \
    X(ANSWER_WORDS, "answer-words", SCOPE_ANSWER, "w", "", "answer in your own words")         \
    X(PAIR_STOP, "pair-stop", SCOPE_PAIR, "s", "", "stop the pair")                            \
    X(PAIR_RESUME, "pair-resume", SCOPE_PAIR, "r", "", "go on, with as many rounds again")     \
    X(PAIR_ACCEPT, "pair-accept", SCOPE_PAIR, "y", "", "the work passes")                      \
    X(PAIR_REJECT, "pair-reject", SCOPE_PAIR, "x", "",                                         \
      "the work does not pass: one more round")                                                \
    X(PAIR_TASK, "pair-task", SCOPE_PAIR, "n", "", "a new task for the pair")                  \
    X(KEY_ADD, "key-add", SCOPE_KEYRING, "a", "",                                              \
      "add the key, or replace it; Enter does so, too")                                        \
    X(KEY_REMOVE, "key-remove", SCOPE_KEYRING, "D", "", "remove the stored key (asks)")        \
    X(KEY_TRY, "key-try", SCOPE_KEYRING, "t", "", "try the key that is in force")              \
    X(KEY_LEVEL, "key-level", SCOPE_KEYRING, "Tab BackTab", "",                                \
      "keys of yours, or of the project")                                                      \
    X(VAULT_OPEN, "vault-open", SCOPE_KEYRING, "u", "", "open the vault by its passphrase")    \
    X(VAULT_LOCK, "vault-lock", SCOPE_KEYRING, "l", "", "lock the vault")                      \
    X(PROJECT_NEW, "project-new", SCOPE_PROJECTS, "n", "", "make a project")                   \
    X(PROJECT_RENAME, "project-rename", SCOPE_PROJECTS, "R", "", "rename the project")         \
    X(PROJECT_VARS, "project-variables", SCOPE_PROJECTS, "v", "",                              \
      "variables of the current project")                                                      \
    X(VAR_ADD, "variable-add", SCOPE_VARS, "a", "", "add a variable; Enter changes one")       \
    X(VAR_SECRET, "variable-secret", SCOPE_VARS, "s", "", "add a secret one, sealed")          \
    X(VAR_REMOVE, "variable-remove", SCOPE_VARS, "D", "", "remove the variable (asks)")

enum action {
    ACT_NONE,
#define ACTION_ENUM(id, name, scope, keys, hint, help) ACT_##id,
    ACTIONS(ACTION_ENUM)
#undef ACTION_ENUM
        ACT_COUNT
};

/* A key: a code point, or KEY_SPECIAL | number; with KEY_ALT. */
typedef uint32_t key_code;
#define KEYC_ALT 0x40000000u
#define KEYC_SPECIAL 0x20000000u
enum { K_UP = KEYC_SPECIAL, K_DOWN, K_LEFT, K_RIGHT, K_HOME, K_END, K_PGUP, K_PGDN, K_DELETE,
       K_INSERT, K_BACKTAB, K_ENTER, K_TAB, K_ESC, K_BACKSPACE, K_F1, K_F12 = K_F1 + 11,
       K_PASTE, /* bracketed paste: text comes beside it */
       K_PASTE_LONG, /* one that is too long for anything here */
       K_RESIZE, K_FOCUS_IN, K_FOCUS_OUT,
       K_MOUSE, /* struct mouse comes beside it */
       K_HANGUP, K_UNKNOWN };

/* What the mouse did, at a cell of the screen. */
enum mouse_kind { MOUSE_PRESS, MOUSE_RELEASE, MOUSE_DRAG, MOUSE_WHEEL_UP, MOUSE_WHEEL_DOWN };
struct mouse {
    enum mouse_kind kind;
    int button; /* 0 left, 1 middle, 2 right */
    int y, x;
};

struct keymap;
struct keymap *keymap_new(void); /* the defaults */
void keymap_free(struct keymap *k);
/* Rebind: "kill = D x". 0, or ERR_INVALID naming the clash or the nearest word. */
int keymap_bind(struct keymap *k, const char *action, const char *keys, struct err *e);
/* Several at once, so that two may change places. One that cannot be bound is told of, and has
 * its default keys, or none where these are taken now. */
struct key_line; /* cct/config/options.h */
void keymap_bind_all(struct keymap *k, const struct key_line *v, size_t n,
                     void (*bad)(void *ctx, const struct key_line *l, const struct err *e),
                     void *ctx);
const char *action_keys(enum action a); /* the default ones */
/* Look up a key in `scope`, then in those whose keys count there as well. Sequences
 * ("gg", "za"): ACT_NONE with *pending true after the first key. The caller resets
 * by keymap_reset on any other event. */
enum action keymap_find(struct keymap *k, enum key_scope scope, key_code key, bool *pending);
void keymap_reset(struct keymap *k);
const char *action_name(enum action a);
const char *action_hint(enum action a);
const char *action_help(enum action a);
enum key_scope action_scope(enum action a);
/* Which of the action's keys that is, from 0 on, in the order of its names; -1: none. */
int keymap_which(const struct keymap *k, enum action a, key_code key);
/* Names of the keys bound now, "D F9"; borrowed. */
const char *keymap_keys(const struct keymap *k, enum action a);
/* All actions with the keys bound now as a Markdown table. New string. */
char *keymap_table(const struct keymap *k);
/* "^D" and back; 0 when it is no key. */
key_code key_parse(const char *name);
void key_format(key_code k, char *dst, size_t size);

#endif
