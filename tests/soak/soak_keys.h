/* What a person does, as keys. A script is pressed from the list with nothing open, and left
 * again by Esc. In it: ~ a look at what came of it, @ words of a message, # a digit, & a
 * small number of presses of the key that follows. */
#ifndef CCT_TESTS_SOAK_KEYS_H
#define CCT_TESTS_SOAK_KEYS_H

#define UP_ "\033[A"
#define DOWN_ "\033[B"
#define RIGHT_ "\033[C"
#define LEFT_ "\033[D"
#define PGUP_ "\033[5~"
#define PGDN_ "\033[6~"

static const struct script {
    const char *keys;
    int weight;
} scripts[] = {
    /* the list */
    {"&j&k&j", 12},
    {"gg&jG&k", 6},
    {"\004\025\006\002&j", 4},
    {"&j~&j~&j~&k~", 8},
    {"<><>I~I", 3},
    {"S~j\r~", 2},
    {"/ude~\r~&j~", 3},
    {"/x7~", 2},
    {"/working\r~&j", 2},
    {"-~-~]~[~", 4},
    {"d~d~", 4},
    {" j j ~U", 3},
    {"*~U", 2},
    {"b~", 2},
    {"Tone two\r~", 2},
    {"R\025\r", 1},
    {"P~P", 2},
    {"c~yu~", 2},
    {"t~", 1},
    {"f~&jf~", 4},
    {"\t~\t~\033[Z~", 4},
    /* the output */
    {"&j\r~&k~&j~G", 10},
    {"&j\rgg~\006\006~G", 5},
    {"&j\rzM~zR~za~", 4},
    {"&j\rw~w~t~t~V~V", 4},
    {"&j\r{{{~}}", 4},
    {"&j\rF~kkkk~F", 3},
    {"&j\r/step\r~nnN~", 4},
    {"&j\r/TAG\r~NNNN~", 3},
    {"&j\rvkkkk~y~", 3},
    {"&j\ryc~ym~ya~", 2},
    {"&j\r" PGUP_ PGUP_ PGUP_ PGUP_ "~" PGDN_, 6},
    {"&j\re~", 1},
    {"2~\025\025\025~G", 4},
    {"\033l~&k~", 2},
    /* panels and views */
    {"3~jjk~\r", 3},
    {"4~>>>~<<~lll~hh~", 5},
    {"4~x", 1},
    {"5~kkk~G", 3},
    {"W~&l~&j~f~", 5},
    {"W~#~#~\r~", 4},
    {"o~jk", 3},
    {"O~jjj\r~h~.~r~", 4},
    {"v~jj\r~h", 3},
    {"gp~", 2},
    {"gk~", 1},
    {"g/TAG~", 2},
    {"g/hello answer~&" DOWN_ "\r~", 2},
    {"?~" PGDN_ PGDN_ "~/list\r", 3},
    {":ref~\r", 2},
    {":theme ~", 1},
    {":theme dark\r~", 1},
    {":theme light\r~", 1},
    {":theme mono\r~", 1},
    {":help\r~", 2},
    {":claude~\r~", 2},
    {":zz~", 1},
    {"Z~~Z", 3},
    {"\022~", 2},
    {"\014", 1},
    {"\032~", 2}, /* to the shell: there is none, so it comes back at once */
    /* the agent */
    {"&ji@\r~", 14},
    {"&ji@\n@\r~", 3},
    {"&ji@" LEFT_ LEFT_ LEFT_ "\177\177~\003", 4},
    {"&ji" UP_ UP_ "~" DOWN_ "\003", 3},
    {"&ji@\033i~\r", 2},
    {"&ji\033q~\003", 1},
    {"&ji\033x~\003", 1},
    {"&ji\033r~", 1},
    {"&ji/~", 1},
    {"&ji@\033i~", 1}, /* drafts stay where they were left */
    {"]a1~", 8},
    {"]a" DOWN_ "\r~", 4},
    {"a~", 2},
    {"&jX~", 2},
    {"u", 1},
    {"&jp~", 2},
    {"&jr~", 4},
    /* forms, which are left as they are */
    {"n~\t~\t" RIGHT_ RIGHT_ "~\t\tabc~", 3},
    {"N@~\033[Z\033[Z~", 2},
    {"g2~\t\tx~", 1},
    {"n\033[Z\033[Z\033[Z~abc~", 2},
    {"K~\t~", 2},
    {"D~", 2},
    {"&jDn~", 1},
    /* and some that make or end something */
    {"&jN@\033s~", 1},
    {"&jDy~", 1},
};
#endif
