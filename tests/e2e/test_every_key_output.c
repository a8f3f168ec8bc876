/* Every key of the output and of a selection in it, on the real program. */
#include "../lib/keyrun.h"

int main(void)
{
    return keyrun_main("output replay");
}
