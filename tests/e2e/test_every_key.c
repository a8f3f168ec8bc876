/* Every key of the list, and those that count everywhere, on the real program. */
#include "../lib/keyrun.h"

int main(void)
{
    return keyrun_main("list");
}
