"""What compiled code shares. The ground floor: nothing here knows expressions or events.

Read `kernel` first: it has the decorators with which functions are compiled.

    kernel      the decorators                               cache       compiled kernels on disk
    parts       how helpers are compiled                     source      what a kernel depends on
    by_address  calls of a kernel by its address             notice      the line that says that kernels are compiled
    packed      many arrays as one argument                  fields      named tuples of arrays as one argument
    numbers     conversions between types of numbers         hashing     hashes of numbers
    bits        halves of words, sets of bits                prefetch    hints to the processor
    atomic      writes that other threads see
    sorting     sorting and binary search                    ranges      ranges of consecutive places in arrays
    growing     arrays that grow                             background  threads that end before the interpreter does
    byte_search search in bytes, many at a time
"""
