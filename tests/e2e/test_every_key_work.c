/* Every key of what is in a sandbox, on the real program. */
#include "../lib/keyrun.h"

int main(void)
{
    return keyrun_main("procs files changes pair cloud");
}
