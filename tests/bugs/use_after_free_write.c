/* Writing to a block that was freed. */
#include <stdlib.h>

struct account {
    int owner;
    int balance;
};

int main(void)
{
    struct account *account = calloc(1, sizeof *account);
    free(account);
    account->balance = 100;
    return 0;
}
