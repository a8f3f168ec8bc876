/* Every key of forms, on the real program. */
#include "../lib/keyrun.h"

int main(void)
{
    return keyrun_main("forms");
}
