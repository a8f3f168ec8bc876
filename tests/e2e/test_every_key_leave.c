/* Every key of what leaves the screen, on the real program. */
#include "../lib/keyrun.h"

int main(void)
{
    return keyrun_main("leave");
}
