/* Every key of the input and of lines of text, on the real program. */
#include "../lib/keyrun.h"

int main(void)
{
    return keyrun_main("input");
}
