/* delete of another size. */
#include <cstddef>

struct Shape {
    int corners;
};

struct Square : Shape {
    double side[4];
};

int main()
{
    Shape *shape = new Square; /* Shape has no virtual destructor */
    delete shape;
    return 0;
}
