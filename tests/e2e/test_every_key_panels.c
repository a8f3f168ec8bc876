/* Every key of wall, usage and builds, on the real program. */
#include "../lib/keyrun.h"

int main(void)
{
    return keyrun_main("wall usage builds wide");
}
