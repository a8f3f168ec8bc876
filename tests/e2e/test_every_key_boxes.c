/* Every key of boxes and asked lines, on the real program. */
#include "../lib/keyrun.h"

int main(void)
{
    return keyrun_main("boxes low");
}
